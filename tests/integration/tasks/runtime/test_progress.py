"""Progress of runs: its key, what is counted for which run, and a sign of life past a server that is away."""

import threading
from uuid import uuid4

import httpx
import pytest

from evalake.tasks.runtime import progress as runtime_progress
from evalake.tasks.runtime.progress import advance, ended, heartbeat_artifact, shown


def test_what_ends_is_counted_for_the_run_that_is_shown_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: uuid4())  # no server here
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", lambda *_: None)
    advance("mine", by=4)  # before anybody shows it
    with shown("mine", "guard mine", 9):
        advance("mine", "first", 2)
        advance("nobody's", "first", 5)
        ended("mine", "second", 3)
        ended("mine", "second", 3)  # the same part, as another process says it again
        ended("nobody's", "second", 3)
    assert capsys.readouterr().err.splitlines()[-1] == "guard mine: 5 of 9"


def test_it_shows_progress_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []
    thrice = threading.Event()
    away = [True]

    def update(_: object, progress: float) -> None:
        if away.pop() if away else False:
            raise httpx.ConnectError("away")
        shown.append(progress)
        if len(shown) == 3:
            thrice.set()

    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: uuid4())
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", update)
    monkeypatch.setattr(runtime_progress, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(runtime_progress, "BEAT_SECONDS", 0.002)
    with heartbeat_artifact("key", "title", lambda: 50.0):
        assert thrice.wait(60)
    count = len(shown)
    assert shown == [50.0] * count
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
