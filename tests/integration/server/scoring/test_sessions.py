"""Sessions that were read once are known to whoever opens the lake."""

import socket
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from evalake.contracts.tables import QUARANTINE
from evalake.core.errors import LakeError
from evalake.sdk import Dataset
from evalake.server.scoring import sessions as module
from evalake.server.scoring.sessions import Sessions
from evalake.server.settings import NotFoundError, NotOverError
from evalake.storage.lake import Lake
from evalake.suites.session_review.sources import database
from evalake.suites.session_review.sources.tarsy_live import TOKEN_VARIABLE
from tests.integration.server.services import Place
from tests.servers.model_server import ModelServer
from tests.servers.tarsy_api import TOKEN, TarsyApi


def test_a_session_of_a_source_is_in_the_lake_from_then_on(place: Place) -> None:
    place.write("first", "second")
    assert Sessions(place.lake, [str(place.sessions)]).read_sources() == ["first", "second"]
    again = Sessions(place.lake)
    assert not again.has_sources
    assert set(again.all()) == {"first", "second"}
    known = again.find("second")
    ((found, sample),) = again.samples([known])
    assert (found, sample.sample_hash) == (known, known.sample_hash)
    with pytest.raises(NotFoundError):
        again.find("third")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_AGAIN_SECONDS", 0.0)


@pytest.fixture
def place(tmp_path: Path, model_server: ModelServer) -> Place:
    return Place(tmp_path, model_server)


def test_a_source_that_is_away_is_a_state_until_it_is_back(place: Place) -> None:
    sessions = Sessions(place.lake, [str(place.sessions)])
    assert [source.state for source in sessions.sources] == ["unread"]
    assert sessions.read_sources() == []
    (away,) = sessions.sources
    assert away.state == "away"
    assert "there is no dataset source" in str(away.detail)
    with pytest.raises(NotFoundError):
        sessions.find("first")
    place.write("first")
    assert sessions.read_sources() == ["first"]
    assert sessions.take_new() == (["first"], [])  # a lake's first sessions are the past, not news
    assert [(source.state, source.detail) for source in sessions.sources] == [("read", None)]
    place.sessions.unlink()
    assert sessions.read_sources() == []
    assert [source.state for source in sessions.sources] == ["away"]
    assert sessions.find("first").session_id == "first"


def test_a_source_without_a_session_that_is_over_is_a_state(place: Place) -> None:
    place.write("running", status="in_progress")
    sessions = Sessions(place.lake, [str(place.sessions)])
    assert sessions.read_sources() == []
    assert [source.state for source in sessions.sources] == ["empty"]
    with pytest.raises(NotOverError):
        sessions.find("running")


def test_what_a_source_refuses_is_told_and_quarantined_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.write("first")
    (place.sessions.parent / "bad.json").write_text("{broken")
    sessions = Sessions(place.lake, [str(place.sessions.parent)])
    with caplog.at_level("WARNING", "evalake.service"):
        assert sessions.read_sources() == ["first"]
    (source,) = sessions.sources
    assert (source.state, source.detail) == ("read", "1 refused: bad.json (not a JSON object)")
    assert f"the source {source.source}: {source.detail}" in caplog.messages
    Sessions(place.lake, [str(place.sessions.parent)]).read_sources()  # whose folder has the lake in it
    (refused,) = place.lake.frame(QUARANTINE).collect().to_dicts()
    assert (refused["payload"], refused["reason"]) == ("{broken", "not a JSON object in bad.json")


def test_only_what_has_changed_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("first")
    reads: list[str] = []
    _read_by(monkeypatch, lambda name: reads.append(name))
    sessions = Sessions(place.lake, [str(place.sessions)])
    for _ in range(3):
        sessions.read_sources()
    assert len(reads) == 1
    place.write("second")
    assert sessions.read_sources() == ["second"]
    assert len(reads) == 2


@pytest.mark.parametrize("is_live", [False, True])
def test_what_could_not_be_landed_is_read_again(place: Place, is_live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*names: str) -> None:
        place.write(*names)
        for name in names:
            api.put(name, len(api.items))

    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    with TarsyApi() as api:
        write("first")
        sessions = Sessions(place.lake, [api.url if is_live else str(place.sessions)])
        sessions.read_sources()
        sessions.take_new()
        write("second", "third")
        with monkeypatch.context() as patch:
            patch.setattr(module, "land_samples", Mock(side_effect=LakeError("the disk is full")))
            with pytest.raises(LakeError, match="full"):
                sessions.read_sources()
        sessions.read_sources()
        assert sessions.take_new() == (["second", "third"], ["second", "third"])


def test_a_mistyped_id_waits_for_no_source_and_holds_nobody_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("first")
    sessions = Sessions(place.lake, [str(place.sessions)])
    sessions.read_sources()
    place.write("second")
    reading, go_on = threading.Event(), threading.Event()
    _read_by(monkeypatch, lambda _: (reading.set(), go_on.wait(600)))  # type: ignore[func-returns-value]
    reader = threading.Thread(target=sessions.read_sources)
    reader.start()
    assert reading.wait(600)
    with pytest.raises(NotFoundError):
        sessions.find("mistyped")
    assert sessions.find("first").session_id == "first"
    go_on.set()
    reader.join()
    assert sessions.find("second").session_id == "second"


def test_a_database_that_never_answers_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        sessions = Sessions(Lake(str(tmp_path / "lake")), [f"postgresql://reader@127.0.0.1:{port}/tarsy"])
        assert sessions.read_sources() == []
    assert [source.state for source in sessions.sources] == ["away"]
    monkeypatch.setattr(module, "read_dataset", Mock(side_effect=KeyError("x")))
    broken = module.Source(__file__)
    broken.read({}, Mock())
    assert (broken.state, broken.detail) == ("away", "unexpected KeyError: 'x'")


def _read_by(monkeypatch: pytest.MonkeyPatch, first: object) -> None:
    """Have something done before each reading of a source."""
    read = module.read_dataset  # type: ignore[attr-defined]

    def reading(name: str, **options: Any) -> Dataset:
        assert callable(first)
        first(name)
        return read(name, **options)

    monkeypatch.setattr(module, "read_dataset", reading)
