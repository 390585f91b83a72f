"""Sessions that were read once are known to whoever opens the lake."""

from pathlib import Path

import pytest

from service.errors import NotFoundError
from service.scoring.sessions import Sessions
from tests.servers.model_server import ModelServer
from tests.service.services import Place


def test_a_session_of_a_source_is_in_the_lake_from_then_on(tmp_path: Path, model_server: ModelServer) -> None:
    place = Place(tmp_path, model_server)
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
