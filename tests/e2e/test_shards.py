"""One run asked by several flow runs, on workers of their own, one of which dies in the middle."""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from contracts.tables import RUNS, SNAPSHOTS
from flows.shards import DEPLOYMENT as SHARD
from flows.shards import PATIENCE
from tests.e2e.counts import KEY_VARIABLE, are_there_once, asker, committed_by, key_of
from tests.e2e.processes import PrefectStack, Process, wait_until
from tests.flows.workplace import LIMITS, Workplace
from tests.servers.collector import Collector

pytestmark = pytest.mark.e2e

RUN = "evaluate/command-guard-nightly"
ITEMS = 160
LATENCY_SECONDS = 0.5
UNTIL_BOTH_ASK_SECONDS = 4.0  # so slow that the first shard is not through when the process of the second is up
ENDS = ("Completed", "Failed", "Crashed", "Cancelled")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
def workers(stack: PrefectStack, collector: Collector) -> Iterator[list[Process]]:
    """Two workers of one pool. Each takes one flow run at a time, so that both have something to do."""
    common = {PATIENCE: "10", "EVALAKE_TELEMETRY": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    with stack.pool(RUN, SHARD) as pool:
        yield [stack.worker("--limit", "1", pool=pool, **key_of(name), **common) for name in ("first", "second")]


@pytest.fixture
def work(work: Workplace) -> Workplace:
    work.configure(batch_size=20, limits=LIMITS, key_env=KEY_VARIABLE)
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    return work


def test_two_workers_ask_a_half_each_of_one_run(
    stack: PrefectStack, work: Workplace, workers: list[Process], collector: Collector
) -> None:
    flow_run = begin_slowly(stack, work)
    assert stack.wait_for(flow_run, *ENDS) == "Completed"
    halves = {name: {each.content for each in work.server.seen if asker(each) == name} for name in ("first", "second")}
    assert min(map(len, halves.values())) > ITEMS // 4  # hashes decide, so a half is about a half
    assert work.asked() == sum(map(len, halves.values())) == len(halves["first"] | halves["second"]) == ITEMS
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"], run["calls_from_ledger"]) == ("completed", ITEMS, 0)
    assert run["cost_usd"] == pytest.approx(ITEMS * (20 * 1.0 + 5 * 2.0) / 1e6)
    assert work.rows(SNAPSHOTS)["snapshot_id"].to_list() == [run["snapshot_id"]]
    assert are_there_once(work, ITEMS)
    spans = {span.id: span for span in collector.spans}  # of both workers: one trace, whose root is the run
    (root,) = [span for span in spans.values() if not span.parent]
    calls = [span for span in spans.values() if span.name.startswith("chat")]
    assert root.name == "evaluate command_guard"
    assert {span.trace for span in spans.values()} == {root.trace}
    assert len(calls) == ITEMS
    assert all(spans[call.parent].name.startswith("batch") for call in calls)


def test_a_worker_that_dies_with_its_shard_loses_nothing_and_doubles_nothing(
    stack: PrefectStack, work: Workplace, workers: list[Process]
) -> None:
    flow_run = begin_slowly(stack, work)
    child = wait_until(lambda: shard_of(stack, flow_run), "the process of the shard")
    by_pid = {process.pid: worker for worker in workers for process in processes_of(worker)}
    victim = by_pid[child]
    name = ("first", "second")[workers.index(victim)]
    wait_until(lambda: committed_by(work, name), "a reply to the shard")
    victim.kill_all()
    asked, committed = work.asked(), work.committed()
    assert stack.wait_for(flow_run, *ENDS) == "Completed"
    assert not [request for request in work.server.seen[asked:] if request.content in committed]
    assert work.asked() <= ITEMS + 8 + 8 / LATENCY_SECONDS  # what was in flight, and what came in within a second
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"]) == ("completed", ITEMS)
    assert are_there_once(work, ITEMS)


def test_a_run_whose_shards_no_worker_takes_asks_everything_itself(stack: PrefectStack, work: Workplace) -> None:
    with stack.pool(SHARD):  # which has no worker
        flow_run = begin(stack, work, limit=20, key_env="")
        assert stack.wait_for(flow_run, *ENDS) == "Completed"
    assert work.asked() == 20
    (shard,) = shards_of(stack, flow_run)
    assert shard["state_name"] == "Cancelled"
    assert are_there_once(work, 20)


def begin(stack: PrefectStack, work: Workplace, limit: int | None = None, key_env: str = KEY_VARIABLE) -> str:
    """Start a run in two shards."""
    work.configure(batch_size=20, limits=LIMITS, key_env=key_env)
    return stack.run(RUN, work.parameters(work.dataset(ITEMS), limit=limit, shards=2))


def begin_slowly(stack: PrefectStack, work: Workplace) -> str:
    """Start a run in two shards; return once both ask. The first is not through then, however late the second is."""
    work.server.rule(reply='{"action": "BLOCK"}', latency=UNTIL_BOTH_ASK_SECONDS)
    flow_run = begin(stack, work)
    wait_until(lambda: {asker(each) for each in list(work.server.seen)} >= {"first", "second"}, "calls of both workers")
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    return flow_run


def shards_of(stack: PrefectStack, flow_run: str) -> list[dict[str, Any]]:
    """The flow runs of a run's shards."""
    tag = flow_run.replace("-", "")[-12:]
    of_run = {"tags": {"all_": [tag]}, "name": {"like_": "shard-"}}  # the run itself has its tag, too
    found: list[dict[str, Any]] = stack.post("/flow_runs/filter", {"flow_runs": of_run})
    return found


def shard_of(stack: PrefectStack, flow_run: str) -> int | None:
    """The process of the one shard; None where it has not begun."""
    pids = [shard["infrastructure_pid"] for shard in shards_of(stack, flow_run)]
    return int(pids[0].rpartition(":")[2]) if pids and pids[0] else None


def processes_of(worker: Process) -> list[psutil.Process]:
    """What a worker has started."""
    return psutil.Process(worker.popen.pid).children(recursive=True)
