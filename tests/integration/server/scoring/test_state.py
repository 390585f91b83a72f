"""What the service consists of, opened as its settings say."""

from pathlib import Path

from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.scoring.state import AppState
from tests.integration.server.services import JUDGE, Place
from tests.servers.model_server import ModelServer


def test_a_session_that_was_never_scored_is_an_entry_without_a_score(tmp_path: Path, model_server: ModelServer) -> None:
    place = Place(tmp_path, model_server)
    place.write("first")
    state = AppState.open(
        ScoringSettings(
            lake=place.lake, judge=JUDGE, sources=(str(place.sessions),), configuration_file=str(place.configuration)
        )
    )
    assert state.sessions.read_sources() == ["first"]
    detail = state.detail(state.sessions.find("first"))
    assert (detail.session_id, detail.score, detail.human_ratings) == ("first", None, [])
