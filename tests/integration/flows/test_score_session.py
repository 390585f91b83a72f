"""The flow of one scoring, in this process: the states it goes through, and the reasons for which it fails."""

from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalake.contracts.tables import SAMPLES
from evalake.core.configuration import read_configuration
from evalake.core.errors import ConfigurationError, EvalakeError, UsageError
from evalake.flows.score_session import LostScoringError, Scoring, give_up, read_samples, read_score, score_session
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.suites.session_review.contract import RESULTS
from evalake.tasks.runtime.resources import RunOverError
from tests.e2e.processes import wait_until
from tests.integration.server.services import Place, count_commits
from tests.integration.server.test_one_scoring import begin, take
from tests.servers.model_server import ModelServer


@pytest.fixture
def place(tmp_path: Path, model_server: ModelServer) -> Place:
    place = Place(tmp_path, model_server)
    place.write("first")
    return place


def run(place: Place, score_id: str) -> int | None:
    return score_session(score_id, lake=place.lake.uri, configuration_file=str(place.configuration))


def test_a_pending_scoring_is_completed_and_a_completed_one_is_let_be(place: Place) -> None:
    score_id = begin(place)
    assert read_score(place.lake, score_id)["status"] == "pending"
    total = run(place, score_id)
    row = read_score(place.lake, score_id)
    assert (row["status"], row["total_score"]) == ("completed", total)
    assert row["asked_at"] <= row["started_at"] <= row["completed_at"]
    asked = len(place.server.requests())
    assert run(place, score_id) is None
    assert len(place.server.requests()) == asked


@pytest.mark.parametrize(("held_seconds", "commits"), [(600.0, 4), (0.0, 5)])
def test_a_scoring_takes_four_commits_and_one_more_where_its_answers_are_apart(
    place: Place, monkeypatch: pytest.MonkeyPatch, held_seconds: float, commits: int
) -> None:
    """It is asked for, its judge answers while the ledger holds replies, it ends, and it names tools."""
    monkeypatch.setattr(ledger, "COMMIT_AFTER_SECONDS", held_seconds)
    place.write("second")
    run(place, begin(place))  # which makes the tables
    before = count_commits(place.lake)
    assert run(place, begin(place, "second")) == 60
    added = count_commits(place.lake) - before
    assert added == {"session_scores": 2, "calls": commits - 3, "session_missing_tools": 1}


def test_a_scoring_that_others_ended_is_lost(place: Place) -> None:
    score_id = begin(place)
    scoring = take(place, score_id)
    assert scoring is not None
    scoring.walk()
    scoring.fail("cancelled", "ann cancelled it")
    with pytest.raises(LostScoringError, match="was given up on: ann cancelled it"):
        scoring.end()
    assert read_score(place.lake, score_id)["status"] == "failed"


def test_a_score_that_breaks_its_contract_fails_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    score_id = begin(place)
    scoring = take(place, score_id)
    assert scoring is not None
    scoring.walk()
    suite = scoring.context.suite

    def beyond_all_points(*answered: Any) -> Any:
        (row,) = suite.scoring.score(*answered)[RESULTS.table]
        return {RESULTS.table: [{**row, "total_score": 150}]}

    scored = replace(suite, scoring=replace(suite.scoring, score=beyond_all_points))  # ours gives none
    monkeypatch.setitem(vars(scoring.context), "suite", scored)
    with pytest.raises(EvalakeError, match="has no score: the score breaks its contract"):
        scoring.end()
    assert read_score(place.lake, score_id)["error_kind"] == "contract"


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (KeyboardInterrupt(), "its process was terminated before the judge had answered: start a new scoring"),
        (CancelledError(), "it was cancelled"),
        (OSError("no space left"), "OSError: no space left"),
    ],
)
def test_whoever_ended_its_process_is_said_in_words(
    place: Place, monkeypatch: pytest.MonkeyPatch, ended: BaseException, reason: str
) -> None:
    def end(scoring: Scoring) -> None:
        raise ended

    monkeypatch.setattr(Scoring, "walk", end)  # a signal would end the process of the tests
    score_id = begin(place)
    with pytest.raises(type(ended)):
        run(place, score_id)
    row = read_score(place.lake, score_id)
    assert (row["status"], row["error_message"]) == ("failed", reason)


def test_a_scoring_that_is_given_up_does_not_wait_for_its_judge(place: Place) -> None:
    place.answer(latency=600.0)
    score_id = begin(place)
    with ThreadPoolExecutor(1) as thread:
        scoring = thread.submit(copy_context().run, run, place, score_id)
        wait_until(lambda: place.server.requests(), "the question to the judge")
        give_up(score_id)
        with pytest.raises(RunOverError):
            scoring.result()
    row = read_score(place.lake, score_id)
    reason = "its process was terminated before the judge had answered: start a new scoring"
    assert (row["status"], row["error_message"]) == ("failed", reason)
    give_up(score_id)  # it is over


def test_other_criteria_than_those_it_was_begun_with_fail_it(place: Place) -> None:
    score_id = begin(place)
    with place.configuration.open("a") as file:
        file.write('[suites.session_review]\ntemplates = "outcome_first"\n')
    with pytest.raises(ConfigurationError, match="differ from those of the service"):
        run(place, score_id)
    row = read_score(place.lake, score_id)
    assert (row["status"], row["error_kind"]) == ("failed", "configuration")


def test_what_is_not_there_is_named(tmp_path: Path, place: Place) -> None:
    empty = Lake(str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="has no scoring feed"):
        Scoring.take(empty, "feed", read_configuration(place.configuration))
    assert place.lake.frame(SAMPLES).collect().is_empty()
    with pytest.raises(UsageError, match="has no session with the hash beef"):
        read_samples(place.lake, ["beef"])
