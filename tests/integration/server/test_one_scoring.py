"""One scoring from its pending row to its end, without any process around it: what lands, and what is left of calls."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Running, Scheduled

from evalake.contracts.contract import Contract, Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALL_FAILURES
from evalake.core.configuration import Service, read_configuration
from evalake.core.errors import EvalakeError, LakeError, UsageError
from evalake.flows.score_session import Scoring, pending, read_score
from evalake.server.scoring import events
from evalake.server.scoring.events import Watch
from evalake.server.scoring.queue import Queue, QueueError, Seen
from evalake.server.scoring.scorings import Completions, Scorings, ScoringSettings
from evalake.server.scoring.sessions import Sessions
from evalake.storage.lake import Lake
from evalake.storage.landing import land, land_together
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.prompts import criteria_hash_of
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import release_client
from tests.integration.server.services import ANSWER, JUDGE, Place
from tests.servers.model_server import ModelServer

LIMITS = "attempts = 1\nbreaker_failures = 2\nbreaker_seconds = 3600"
NOW = datetime.now(UTC)
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
    assert row["error_message"].startswith("the missing tools are not known: the judge gave no answer")
    place.answer()
    asked = len(place.server.requests())
    again = finish(place, row["score_id"])
    assert (again["total_score"], again["missing_tools"], again["error_message"]) == (60, ["kubectl-logs"], None)
    assert len(place.server.requests()) == asked + 1  # the second turn alone
    assert take(place, row["score_id"]) is None


def test_a_score_is_completed_once_its_tools_have_landed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lake: Lake, contract: Contract, rows: pl.DataFrame) -> None:
        if contract is MISSING_TOOLS:
            raise LakeError("the disk is full")
        land_together(lake, contract, rows)

    score_id = begin(place)
    monkeypatch.setattr("evalake.flows.score_session.land_together", refuse)
    with pytest.raises(LakeError):
        finish(place, score_id)
    monkeypatch.undo()
    assert (read_score(place.lake, score_id)["status"], finish(place, score_id)["status"]) == ("pending", "completed")
    assert place.lake.frame(MISSING_TOOLS).collect()["tool_name"].to_list() == ["kubectl-logs"]


def test_what_died_is_asked_for_again_under_its_number_and_paid_for_once(place: Place) -> None:
    scoring = take(place, first := begin(place))
    assert scoring is not None
    scoring.walk()
    release_client(scoring.context)
    scoring.fail("lost", "its process died")
    asked = len(place.server.requests())
    service = scorings(place)
    decision = service.request("first", "ann", force=True)
    assert decision.row["score_id"] != first
    row = finish(place, decision.row["score_id"])
    assert (row["status"], row["replicate"], row["total_score"]) == ("completed", 0, 60)
    assert len(place.server.requests()) == asked
    assert {each["score_id"] for each in place.lake.frame(MISSING_TOOLS).collect().to_dicts()} == {row["score_id"]}
    assert service.request("first", "ann", force=True).row["replicate"] == 1


def test_what_waits_is_asked_as_of_now_after_an_upgrade(place: Place) -> None:
    score_id = begin(place)
    with place.configuration.open("a") as file:
        file.write('[suites.session_review]\ntemplates = "outcome_first"\n')
    scorings(place).renew()
    row = finish(place, score_id)
    assert (row["score_id"], row["status"], row["score_triggered_by"]) == (score_id, "completed", "ann")
    assert row["criteria_hash"] == criteria_hash_of({"templates": "outcome_first"}, "direct")


def test_a_fallback_judges_where_the_provider_cannot_and_the_row_says_so(place: Place) -> None:
    fall_back(place)
    place.server.rule(model="judge", reply=None, faults=({"kind": "server_error", "times": 0},))
    row = finish(place, begin(place))
    assert (row["total_score"], row["judge"], row["fallback_for"]) == (60, "hosted_vllm/second", JUDGE)
    assert place.lake.frame(CALL_FAILURES).collect().height == 1


def fall_back(place: Place, price: str = "") -> None:
    """Have a second judge take over, of this price."""
    text, name = place.configuration.read_text(), "hosted_vllm/second"
    place.configuration.write_text(
        text.replace(f'"{JUDGE}"]\n', f'"{JUDGE}"]\nfallbacks = ["{name}"]\n', 1)
        + f'\n[models."{name}"]\napi_base = "{place.server.api_base}"\n{price}\n'
    )


@pytest.mark.parametrize(
    ("ceilings", "fallback", "begun", "by_the_next"),
    [
        ({"completions_an_hour": 1}, None, 1, 2),
        ({"completion_usd_a_day": 1e-6}, None, 0, 2),
        ({"completion_usd_a_day": 1.0}, "price = { input = 1e6, output = 2.0 }", 0, 0),
        ({}, "", 0, 0),
        ({}, None, 2, 2),
        ({"score_on_completion": False}, None, 0, 0),
    ],
)
def test_new_sessions_are_scored_by_themselves_within_the_ceilings(
    place: Place, ceilings: dict[str, Any], fallback: str | None, begun: int, by_the_next: int
) -> None:
    Sessions(place.lake, [str(place.sessions)], scores_new=True).read_sources()  # the past of a new lake
    place.write("second", "third")
    if fallback is not None:
        fall_back(place, fallback)
    settings = Service(**{"score_on_completion": True, **ceilings})
    sessions = Sessions(place.lake, [str(place.sessions)], scores_new=settings.score_on_completion)
    service = scorings(place, queue := Idle(place.lake.uri, None, 1))
    completions = Completions(service, sessions, settings)
    completions.add(sessions.read_sources())
    for queue.away in (True, False, False):
        completions.begin()
        if queue.away:
            assert not service.state().by_id
    assert len(by_themselves(service)) == begun
    Completions(service, Sessions(place.lake), Service(score_on_completion=True)).begin()  # after a restart
    assert len(by_themselves(service)) == by_the_next


def by_themselves(service: Scorings) -> list[Row]:
    return [row for row in service.state().by_id.values() if row["score_triggered_by"] == "score_on_completion"]


class Idle(Queue):
    """A queue that runs nothing, and only counts what is submitted."""

    submitted, away = 0, False

    def idle_pool(self) -> str | None:
        """Answer as Prefect does, or not."""
        if self.away:
            raise QueueError("Prefect is away")
        return None

    def submit(self, rows: Sequence[Row]) -> None:
        """Leave the rows to the test."""
        self.submitted += len(rows)


def scorings(place: Place, queue: Queue | None = None) -> Scorings:
    """The scorings of a service whose queue runs nothing."""
    settings = ScoringSettings(lake=place.lake, configuration_file=str(place.configuration), judge=JUDGE)
    return Scorings(settings, Sessions(place.lake), queue or Idle(place.lake.uri, None, 1))


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


class Told(Idle):
    """A queue of which the test says which scorings run, and to which pool the others belong."""

    begun: set[str]
    pool: UUID | None = None

    def look(self, rows: Sequence[Row]) -> dict[str, Seen]:
        under_way = Seen(FlowRun(flow_id=uuid4()), Running(), 10.0, NOW)
        waits = Seen(FlowRun(flow_id=uuid4(), deployment_id=self.pool), Scheduled(timestamp=NOW), 0.0, None)
        return {each: under_way if each in self.begun else waits for each in (row["score_id"] for row in rows)}

    def crash(self, run: FlowRun, reason: str) -> None:
        """Leave the flow run as it is."""


def test_each_scoring_that_begins_is_shown_as_under_way_until_its_process_is_lost(place: Place) -> None:
    place.write("second", "third", "fourth")
    ids = [begin(place, session) for session in ("first", "second", "third", "fourth")]
    service, queue = scorings(place), Told(place.lake.uri, None, 1)
    queue.begun = begun = set()
    watch = Watch(service, queue, -1.0)  # any silence is too long, but of what this process runs itself
    for score_id in ids:
        begun.add(score_id)
        queue.under_way.add(score_id)
        asyncio.run(watch.look())
        assert {service.state().by_id[each]["status"] for each in begun} == {"in_progress"}
    queue.under_way.remove(ids[0])  # as if another process had it, of which nothing is heard
    asyncio.run(watch.look())
    (row,) = place.scores("first")
    assert (row["status"], row["error_message"]) == ("failed", "its process gave no sign of life for -1 seconds")


def test_a_second_turn_that_waits_is_taken_by_the_next_service_and_begun_once(place: Place) -> None:
    place.server.rule(contains="\n60", reply=None, faults=REFUSED)
    row = finish(place, begin(place))
    queue = Told(place.lake.uri, None, 1)
    queue.begun, service = set(), scorings(place, queue)
    asyncio.run(Watch(service, queue, 1e9).look())
    assert (queue.awaits(row), service.second_turn("first")[1], queue.submitted) == (True, True, 0)


@pytest.mark.parametrize(
    ("pool", "others_run", "status"), [(None, False, "pending"), (uuid4(), True, "pending"), (uuid4(), False, "failed")]
)
def test_a_scoring_waits_for_its_turn_and_an_hour_for_idle_workers(
    place: Place, pool: UUID | None, others_run: bool, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("second")
    other, _ = (begin(place, session) for session in ("first", "second"))
    queue = Told(place.lake.uri, None, 1)
    queue.begun, queue.pool = {other} if others_run else set(), pool
    watch = Watch(scorings(place), queue, 1e9)
    for at in (0.0, 3000.0, 6000.0):
        monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda at=at: at, time_ns=time.time_ns))
        asyncio.run(watch.look())
    assert [row["status"] for row in place.scores("second")] == [status]
