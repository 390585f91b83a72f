"""One scoring from its pending row to its end, without any process around it: what lands, and what is left of calls."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALL_FAILURES, CALLS
from evalake.core.configuration import read_configuration
from evalake.core.errors import EvalakeError, UsageError
from evalake.flows.score_session import Scoring, pending, read_score
from evalake.server.scoring.sessions import Sessions
from evalake.storage.landing import land
from evalake.suites.session_review.contract import RESULTS
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import release_client
from tests.integration.server.services import ANSWER, JUDGE, Place
from tests.servers.model_server import ModelServer

LIMITS = "attempts = 1\nbreaker_failures = 2\nbreaker_seconds = 3600"
REFUSED = ({"kind": "bad_request", "times": 0},)


@pytest.fixture
def place(tmp_path: Path, model_server: ModelServer) -> Place:
    place = Place(tmp_path, model_server)
    place.write("first")
    return place


def begin(place: Place, session: str = "first") -> str:
    """Land a pending scoring of a session; returns its id."""
    sessions = Sessions(place.lake, [str(place.sessions)])
    sessions.read_sources()
    context = RunContext(
        f"request-{uuid4().hex[:12]}", "session_review", place.lake, read_configuration(place.configuration)
    )
    ((_, sample),) = sessions.samples([sessions.find(session)])
    row = pending(context, sample, JUDGE, 0, "ann")
    land(place.lake, RESULTS, conform([row], RESULTS))
    return str(row["score_id"])


def take(place: Place, score_id: str) -> Scoring | None:
    return Scoring.take(place.lake, score_id, read_configuration(place.configuration))


def finish(place: Place, score_id: str) -> dict[str, Any]:
    """Walk the scoring to its end; returns its row."""
    scoring = take(place, score_id)
    assert scoring is not None
    try:
        scoring.walk()
        return dict(scoring.end())
    finally:
        release_client(scoring.context)


def test_a_scoring_lands_with_its_tools_and_cannot_be_done_twice(place: Place) -> None:
    score_id = begin(place)
    row = finish(place, score_id)
    assert (row["status"], row["total_score"], row["missing_tools"]) == ("completed", 60, ["kubectl-logs"])
    assert (row["score_triggered_by"], row["attempts"]) == ("ann", 1)
    assert row["asked_at"] < row["started_at"] < row["completed_at"]
    assert take(place, score_id) is None
    assert (place.lake.frame(CALLS).collect().height, place.lake.exists(CALL_FAILURES)) == (2, False)


def test_a_judge_that_refuses_fails_the_scoring_and_leaves_a_row_of_its_call(place: Place) -> None:
    place.server.rule(reply=None, faults=REFUSED)
    score_id = begin(place)
    with pytest.raises(EvalakeError, match="the judge gave no answer"):
        finish(place, score_id)
    row = read_score(place.lake, score_id)
    assert (row["status"], row["total_score"]) == ("failed", None)
    (left,) = place.lake.frame(CALL_FAILURES).collect().to_dicts()
    assert (left["run_id"], left["model"], left["replicate"]) == (row["landed_by_run"], JUDGE, 0)
    assert (left["prompt_hash"], left["kind"]) == (row["prompt_hash"], row["error_kind"])
    with pytest.raises(UsageError, match="ask for a new one"):
        take(place, score_id)


def test_a_judge_that_refuses_the_second_turn_keeps_the_score(place: Place) -> None:
    place.server.rule(contains="\n60", reply=None, faults=REFUSED)
    row = finish(place, begin(place))
    assert (row["status"], row["total_score"]) == ("completed", 60)
    assert (row["missing_tools"], row["missing_tools_analysis"]) == (None, None)
    assert row["score_analysis"] in ANSWER
    (left,) = place.lake.frame(CALL_FAILURES).collect().to_dicts()
    assert left["prompt_hash"] == row["prompt_hashes"][1] != row["prompt_hash"]


def test_while_a_provider_is_down_further_scorings_fail_at_once(place: Place) -> None:
    place.configuration.write_text(place.configuration.read_text().replace("attempts = 2", LIMITS))
    place.write("second", "third", "fourth")
    place.server.rule(reply=None, faults=({"kind": "server_error", "times": 0},))
    for session in ("first", "second"):
        with pytest.raises(EvalakeError, match="no answer"):
            finish(place, begin(place, session))
    asked = len(place.server.requests())
    refused = begin(place, "third")
    with pytest.raises(EvalakeError, match="provider hosted_vllm counts as down"):
        finish(place, refused)
    assert len(place.server.requests()) == asked == 2
    assert read_score(place.lake, refused)["error_kind"] == "circuit_open"


def test_a_score_or_a_judge_that_answers_nonsense_keeps_the_circuit_closed(place: Place) -> None:
    place.configuration.write_text(place.configuration.read_text().replace("attempts = 2", LIMITS))
    place.write("second", "third")
    place.server.rule(reply=None, faults=({"kind": "server_error", "times": 0},))
    with pytest.raises(EvalakeError, match="no answer"):
        finish(place, begin(place))
    place.server.rule(reply="no total at all")
    with pytest.raises(EvalakeError, match="no total"):
        finish(place, begin(place, "second"))
    place.answer()
    assert finish(place, begin(place, "third"))["status"] == "completed"
