"""Every row of the status table, alone and in races, over HTTP and across two processes."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from evalake.core.errors import EvalakeError
from evalake.server.scoring.scorings import ScoringSettings, state_of
from evalake.server.scoring.views import micros
from evalake.storage.lake import Lake
from tests.cases import cases_beside
from tests.e2e.processes import PrefectStack
from tests.integration.server.conftest import FORCED, RACES, TABLE
from tests.integration.server.services import Place, Service, at_once

CASES = cases_beside(__file__, "requests.json")

Pair = tuple[Service, Service]

FIELDS = {
    "score_id", "session_id", "status", "prompt_hash", "total_score", "score_analysis", "missing_tools_analysis",
    "error_message", "score_triggered_by", "scored_at_us", "started_at_us", "completed_at_us", "current_prompt_used",
}  # fmt: skip


@pytest.mark.parametrize(("number", "existing", "force", "status", "is_new"), CASES["status"])
def test_what_a_request_for_a_score_is_answered(
    service: Service, place: Place, number: int, existing: str | None, force: bool | None, status: int, is_new: bool
) -> None:
    session = TABLE[number]
    before = None
    if existing is not None:
        before = service.ask(session).json()["score_id"]
        if existing != "pending":
            place.set(before, "in_progress")
        if existing not in ("pending", "in_progress"):
            place.set(before, existing)
    answer = service.ask(session, force)
    assert answer.status_code == status
    if status == 409:
        assert existing is not None
        assert existing in answer.json()["detail"]
    else:
        score = answer.json()
        assert score.keys() >= FIELDS
        assert (score["score_id"] != before) == is_new
        assert score["status"] == ("pending" if is_new else existing)
        assert score["score_triggered_by"] == "api-client"
        assert score["current_prompt_used"] is True
        assert score["scored_at_us"] > 1_700_000_000_000_000
        assert service.score(session).json()["score_id"] == score["score_id"]
    assert len(place.scores(session)) == (2 if before and is_new else 1)


def test_times_of_asking_start_and_end_are_apart(service: Service, place: Place) -> None:
    def times() -> list[int | None]:
        score = service.score(TABLE[14]).json()
        return [score[name] for name in ("scored_at_us", "started_at_us", "completed_at_us")]

    score_id = service.ask(TABLE[14]).json()["score_id"]
    asked, *others = times()
    assert others == [None, None]
    begun, ended = (datetime.fromtimestamp((asked or 0) / 1e6 + later, UTC) for later in (1, 3))
    place.set(score_id, "in_progress", started_at=begun)
    assert times() == [asked, micros(begun), None]
    place.set(score_id, "completed", completed_at=ended)
    assert times() == [asked, micros(begun), micros(ended)]


def test_fifty_requests_at_once_to_two_processes_start_one_scoring_twice_over(
    services: Pair, place: Place, idle: PrefectStack
) -> None:
    for session in RACES:
        answers = at_once(50, lambda number, session=session: services[number % 2].ask(session))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["score_id"] for answer in answers}) == 1
        assert len(place.scores(session)) == 1
    runs = Counter(run["parameters"]["score_id"] for run in _flow_runs(idle))
    assert [runs[place.scores(session)[0]["score_id"]] for session in RACES] == [1] * len(RACES)


def test_of_many_forced_requests_at_once_one_starts_and_the_others_are_told(services: Pair, place: Place) -> None:
    for session in FORCED:
        first = services[0].ask(session).json()["score_id"]
        place.set(first, "completed")
        answers = at_once(20, lambda number, session=session: services[number % 2].ask(session, True))
        assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 19}
        rows = place.scores(session)
        assert [(row["replicate"], row["status"]) for row in rows] == [(0, "completed"), (1, "pending")]


def test_a_score_of_a_run_ended_with_the_run() -> None:
    begun, ended = datetime(2026, 11, 1, 23, tzinfo=UTC), datetime(2026, 11, 2, 1, tzinfo=UTC)
    scored = {"status": "completed", "session_id": "s", "completed_at": None, "asked_at": None, "replicate": 0}
    rows = [{**scored, "score_id": name, "landed_by_run": name} for name in ("over", "going", "unknown")]
    runs = {"run_id": ["over", "going"], "started_at": [begun, begun], "ended_at": [ended, None]}
    state = state_of(pl.DataFrame(rows), pl.DataFrame(schema=["score_id", "position"]), pl.DataFrame(runs), "")
    assert [state.by_id[name]["completed_at"] for name in ("over", "going", "unknown")] == [ended, None, None]
    assert [row["score_id"] for row in state.by_session["s"]] == ["unknown", "going", "over"]


def test_where_no_worker_is_online_the_service_says_that_scorings_wait(service: Service) -> None:
    assert "no worker of the work pool scores is online" in service.process.log.read_text()


def test_a_completed_scoring_never_goes_back(service: Service, place: Place) -> None:
    score_id = service.ask(TABLE[12]).json()["score_id"]
    place.set(score_id, "completed")
    for status in ("pending", "in_progress", "failed"):
        with pytest.raises(AssertionError):
            place.set(score_id, status)
    assert service.score(TABLE[12]).json()["status"] == "completed"


@pytest.mark.parametrize(
    ("session", "body", "status"),
    [
        ("nobody-knows-it", "", 404),
        ("still-going", "", 400),
        (TABLE[13], '{"force_rescore": "maybe"}', 422),
        (TABLE[13], '{"force_rescore": 1}', 422),
        (TABLE[13], '{"force": true}', 422),
        (TABLE[13], "{", 422),
        (TABLE[13], "[]", 422),
        (TABLE[13], "[" * 50_000, 422),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(service: Service, session: str, body: str, status: int) -> None:
    answer = service.ask(session, content=body, headers={"content-type": "application/json"} if body else {})
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert service.score(session).status_code == 404


def _flow_runs(stack: PrefectStack) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = stack.post("/flow_runs/filter", {"limit": 200})
    return found


def settings(tmp_path: Path, **changes: object) -> ScoringSettings:
    file = tmp_path / "evalake.toml"
    file.touch()
    return ScoringSettings(lake=Lake(str(tmp_path / "lake")), configuration_file=str(file), **changes)  # type: ignore[arg-type]


def test_the_embedded_judge_and_the_suites_criteria_are_the_default(tmp_path: Path) -> None:
    usual = settings(tmp_path)
    usual.check()
    assert usual.judge.startswith("baseline/")
    assert len(usual.criteria) == 64


@pytest.mark.parametrize("changes", CASES["settings"], ids=["judge", "password", "parameter", "driver"])
def test_what_cannot_be_used_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(EvalakeError) as refused:
        settings(tmp_path, **changes).check()
    assert "hidden" not in str(refused.value)
