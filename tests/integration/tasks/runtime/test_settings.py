"""What a run is given: names, budgets, alarms and resources."""

import asyncio
import logging
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from distributed import Client, LocalCluster
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.utilities.names import generate_slug

from evalake.contracts.tables import CALLS, RUN_RESERVATIONS
from evalake.core.configuration import Configuration
from evalake.core.errors import LakeError, ProviderError
from evalake.models.request import Reply, Request
from evalake.storage.lake import Lake
from evalake.storage.ledger import append
from evalake.storage.reservations import Amount, Ceiling, Reservation, budget_state, reserve
from evalake.tasks.runtime import artifacts, form, runs
from evalake.tasks.runtime import budget as runtime_budget
from evalake.tasks.runtime.artifacts import emit_run_alarms
from evalake.tasks.runtime.budget import Budget, Spending
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.form import day_of_run, evaluate_run_name, is_generated, started_by
from evalake.tasks.runtime.orders import in_turn, warn_of_other_machines
from evalake.tasks.runtime.progress import logger
from evalake.tasks.runtime.resources import IDLE_CLIENTS, RunOverError, client_of, end_attempt, release_client
from evalake.tasks.runtime.runner import SCHEDULER, ClusterError, cluster_errors, processes, stop_dask_profiler
from evalake.tasks.runtime.runs import Run, Tally, save
from tests.e2e.processes import wait_until
from tests.integration.storage.rows import call

# A flow run is named for what it does, unless somebody named it; its day, and who started it.


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"suite": "quiz"}, "quiz: baselines, 2026-03-01"),
        ({"suite": "quiz", "models": "a/one", "day": "2026-02-28"}, "quiz: a/one, 2026-02-28"),
        (
            {"suite": "quiz", "models": ["one", "two", "three", "four", "five"]},
            "quiz: one, two, three and 2 more, 2026-03-01",
        ),
    ],
)
def test_suite_models_and_day(parameters: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    due = datetime(2026, 3, 1, 8, tzinfo=UTC)
    monkeypatch.setattr(
        form, "flow_run", SimpleNamespace(name=generate_slug(2), parameters=parameters, scheduled_start_time=due)
    )
    monkeypatch.setattr(form, "SHOWN_MODELS", 3)
    assert evaluate_run_name() == name


@pytest.mark.parametrize("name", ["night check", "night-check", "before the release", "brave", "command_guard: a/one"])
def test_a_name_that_somebody_gave_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "flow_run", SimpleNamespace(name=name, parameters={}))
    assert evaluate_run_name() == name


def test_names_that_prefect_makes_up_are_told_from_others() -> None:
    assert all(is_generated(generate_slug(2)) for _ in range(200))


def test_a_run_that_is_made_up_is_of_the_day_that_it_names() -> None:
    assert day_of_run(date(2026, 1, 2)) == date(2026, 1, 2)


def test_any_other_is_of_the_day_on_which_it_is_due() -> None:
    before = datetime.now(UTC).date()
    assert before <= day_of_run() <= datetime.now(UTC).date()


def test_where_the_server_is_away_nobody_knows() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert started_by(str(uuid4()), 1) is None


# Two runs of one order: the second waits for the first where both have batch jobs, and is told of other machines.

ORDER = {"limit": 5, "models": ["m"], "day": "2026-11-28"}
HOLD = """
import sys
from evalake.storage.lake import Lake
from evalake.tasks.runtime.orders import in_turn, warn_of_other_machines
with in_turn(Lake(sys.argv[1]), "toys", {"limit": 5, "models": ["m"], "note": "nightly"}, "one"):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("ends", ["by itself", "by a kill"])
def test_a_run_of_the_same_order_begins_after_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lake = Lake(str(tmp_path / "lake"))
    first = subprocess.Popen([sys.executable, "-c", HOLD, lake.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"holds\n"
        others = [("toys", {**ORDER, "limit": 6}), ("other", ORDER)]
        for suite, parameters in others:
            with in_turn(lake, suite, parameters, "two"):
                assert not caplog.records, "another order does not wait"
        with in_turn(lake, "toys", ORDER, "one"):
            assert not caplog.records, "a newer attempt of the run itself does not wait"
        told = logging.Handler()
        told.emit = lambda _: first.kill() if ends == "by a kill" else first.communicate(b"\n")  # type: ignore[method-assign, assignment]
        logger.addHandler(told)
        try:
            with in_turn(lake, "toys", ORDER, "two"):
                assert first.wait(600) == (-9 if ends == "by a kill" else 0)
        finally:
            logger.removeHandler(told)
        assert "run one of the same order is under way" in caplog.text


def test_a_run_of_the_same_order_is_told_where_machines_share_the_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(f"file://{tmp_path}/lake")
    save(lake, Run("one", "toys", "run", ORDER, {}, ["m"], [], 5, 5, datetime.now(UTC)))
    others = [("toys", ORDER, "one"), ("toys", {**ORDER, "limit": 6}, "two"), ("other", ORDER, "two")]
    for suite, parameters, run_id in others:
        warn_of_other_machines(lake, suite, parameters, run_id)
    assert capsys.readouterr().err == ""
    warn_of_other_machines(lake, "toys", {**ORDER, "note": "nightly"}, "two")
    assert "run one of the same order is under way" in capsys.readouterr().err


# A process's part of a run's ceiling: no call is refused that there is room for.

REQUEST = Request("hosted_vllm/guard", ({"role": "user", "content": "ls"},), {})


def test_a_call_that_ends_while_room_is_looked_for_takes_none_of_it(tmp_path: Path) -> None:
    """Its reply is in the ledger when that is read, and it was among the calls on their way when that was begun."""
    lake = Lake(str(tmp_path / "lake"))
    first, second = (Spending(REQUEST) for _ in range(2))

    async def admit_both() -> None:
        loop = asyncio.get_running_loop()

        def flush() -> None:
            if first.is_admitted and not lake.frame(CALLS).collect().height:
                append(lake, [call(1, run_id="run")])
                asyncio.run_coroutine_threadsafe(end(first), loop).result()

        async def end(spending: Spending) -> None:
            budget.end(spending, Reply("BLOCK"))

        budget = Budget(lake, "run", Ceiling(calls=2), Configuration(), flush, {})
        await budget.admit(first, 0.0, nullcontext)
        await budget.admit(second, 0.0, nullcontext)
        budget.end(second, Reply("BLOCK"))
        await budget.rest()

    asyncio.run(admit_both())
    assert second.is_admitted


def test_calls_that_wait_for_another_process_look_together_what_it_gave_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on its own, they would commit to the lake without a pause for as long as they wait."""
    monkeypatch.setattr(runtime_budget, "LOOK_SECONDS", 0.5)
    lake, calls, looks = Lake(str(tmp_path / "lake")), 50, 4
    reserve(lake, "run", "another", lambda _: Reservation(Amount(calls=calls), Amount()))

    async def admit_all() -> float:
        budget = Budget(lake, "run", Ceiling(calls=calls), Configuration(), lambda: None, {})
        began, first = time.monotonic(), lake.version(RUN_RESERVATIONS) or 0
        waiting = [asyncio.create_task(budget.admit(Spending(REQUEST), 0.0, nullcontext)) for _ in range(calls)]
        while (lake.version(RUN_RESERVATIONS) or 0) < first + looks:
            await asyncio.wait(waiting, timeout=0.02)
        took = time.monotonic() - began
        reserve(lake, "run", "another", lambda _: Reservation(Amount(), Amount()))
        await asyncio.gather(*waiting)
        return took

    assert asyncio.run(admit_all()) >= (looks - 2) * 0.5


def test_what_a_dead_process_had_reserved_is_used_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_budget, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(runtime_budget, "PATIENCE_SECONDS", 0.5)
    lake = Lake(str(tmp_path / "lake"))
    reserve(lake, "run", "dead", lambda _: Reservation(Amount(calls=2), Amount()))

    async def admit() -> None:
        budget = Budget(lake, "run", Ceiling(calls=2), Configuration(), lambda: None, {})
        await budget.admit(Spending(REQUEST), 0.0, nullcontext)

    began = time.monotonic()
    asyncio.run(admit())
    assert time.monotonic() - began > 0.5
    assert budget_state(lake, "run", "another").others["dead"] == Amount()


# What people are to hear of a run is told as an event, the same one however often it is told.


def test_refused_rows_and_a_day_above_its_limit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(artifacts, "emit_event", lambda event, **more: told.append({"event": event, **more}))
    lake = Lake(str(tmp_path / "lake"))
    for name, tally in (("clean", Tally(cost_usd=0.5)), ("dirty", Tally(cost_usd=2.0, rows_quarantined=3))):
        run = Run(name, "quiz", "import", {}, {}, ["a/model"], [], 1, 1, datetime.now(UTC))
        runs.save(lake, run.ended("completed", tally=tally))
    limited = Configuration.model_validate({"alarms": {"cost_usd_a_day": 2.0}})
    emit_run_alarms(lake, Configuration(), "clean")
    assert told == []
    for _ in range(2):
        emit_run_alarms(lake, limited, "dirty")
    refused, cost, *again = told
    assert refused["payload"]["message"] == "run dirty refused 3 rows"
    assert "have cost 2.50 US dollars, above 2" in cost["payload"]["message"]
    assert [each["id"] for each in again] == [refused["id"], cost["id"]]


# Clients of a process that serves many runs: shared within an attempt of a run, and not kept for ever.


def context(run_id: str, attempt: str = "1") -> RunContext:
    return RunContext(run_id, "command_guard", Lake("nowhere"), Configuration(), attempt)


def test_all_batches_of_an_attempt_share_a_client_and_the_next_attempt_has_its_own() -> None:
    with client_of(context("shared")) as first, client_of(context("shared")) as second:
        assert first is second
    with client_of(context("shared")) as third, client_of(context("shared", attempt="2")) as other:
        assert third is first
        assert other is not first
    release_client(context("shared"))
    release_client(context("shared", attempt="2"))


def test_a_batch_that_outlives_its_run_asks_nothing() -> None:
    with client_of(context("over")) as client:
        end_attempt(context("over"))
    with pytest.raises(ProviderError, match="closed"):
        client.run([])
    with pytest.raises(RunOverError, match="over"), client_of(context("over")):
        pass
    with client_of(context("over", attempt="2")) as again:
        assert again.run([]) == []
    release_client(context("over", attempt="2"))


def test_clients_that_nobody_uses_are_closed_once_there_are_many() -> None:
    with client_of(context("oldest")) as oldest, client_of(context("used")) as used:
        pass
    with client_of(context("used")):
        for number in range(IDLE_CLIENTS):
            with client_of(context(f"later {number}")) as latest:
                pass
    with client_of(context("used")) as still, client_of(context("oldest")) as later:
        assert still is used
        assert later is not oldest
    with pytest.raises(ProviderError, match="closed"):
        oldest.run([])
    assert latest is not oldest
    for run_id in ("oldest", "used", *(f"later {number}" for number in range(IDLE_CLIENTS))):
        release_client(context(run_id))


IDLE_AT_THE_END = """
from pathlib import Path
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import client_of
async def nothing():
    pass
for attempt in "12":
    with client_of(RunContext("r", "command_guard", Lake("nowhere"), Configuration(), attempt)) as client:
        client.run([nothing()])
print("done")
"""


def test_a_process_ends_that_still_has_clients() -> None:
    ended = subprocess.run([sys.executable, "-c", IDLE_AT_THE_END], capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


# Where batches are called: Dask workers are left without what can stop them for ever.


def test_a_dask_worker_is_not_profiled_once_it_calls_batches() -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        (worker,) = cluster.workers.values()
        profiling = worker.periodic_callbacks["profile"]
        assert profiling.is_running()
        client.submit(stop_dask_profiler, pure=False).result()
        wait_until(lambda: not profiling.is_running(), "the end of profiling")
        client.submit(stop_dask_profiler, pure=False).result()  # which has nothing to do any more


def test_outside_of_a_cluster_one_process_calls() -> None:
    stop_dask_profiler()
    assert processes() == 1


def test_a_lost_server_is_one_sentence() -> None:
    with pytest.raises(ClusterError, match=r"^the Prefect server at .+ did not answer"), cluster_errors():
        raise RuntimeError("Failed to reach API at http://127.0.0.1:1/api/")


def test_a_lost_scheduler_is_one_sentence_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        monkeypatch.setenv(SCHEDULER, cluster.scheduler_address)
        future = client.submit(abs, 1, resources={"of nobody": 1})  # so that it waits
        client.close()
        with pytest.raises(ClusterError) as lost, cluster_errors():
            future.result()
    (said,) = str(lost.value).splitlines()
    assert cluster.scheduler_address in said
    assert "run again" in said


@pytest.mark.parametrize("error", [LakeError("the lake is full"), ValueError("no")])
def test_what_has_nothing_to_do_with_a_cluster_is_raised_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, cluster_errors():
        raise error
    assert raised.value is error
