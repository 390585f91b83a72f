"""Batches on a Dask cluster: a scheduler and workers as processes, one of them killed in the middle of a run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from evalake.contracts.tables import CALL_FAILURES, CALLS, RUNS
from evalake.storage.ledger import KEY
from tests.e2e.clusters import Cluster
from tests.e2e.counts import KEY_VARIABLE, asker, committed_by, key_of
from tests.e2e.processes import PrefectStack, wait_until
from tests.e2e.test_suspend import SlowRun
from tests.integration.cli.command import evalake_here
from tests.integration.flows.workplace import LIMITS, MODEL, Workplace
from tests.servers.collector import Collector, Span

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
CONCURRENCY = 8  # of each process, by LIMITS
HELD_SECONDS = 3600.0
NOBODY = {"EVALAKE_TASK_RUNNER": "dask", "EVALAKE_DASK_SCHEDULER": "tcp://127.0.0.1:1"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def cluster(stack: PrefectStack, collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(stack, tmp_path_factory.mktemp("dask"))
    cluster.worker("first", **key_of("first"), **collector.environment)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def pooled(stack: PrefectStack, cluster: Cluster, collector: Collector) -> Iterator[PrefectStack]:
    """The stack, whose worker sends the batches of a deployment's runs to the cluster."""
    with stack.pool(DEPLOYMENT) as pool:
        stack.worker(pool=pool, **of(cluster), **collector.environment)
        yield stack


@pytest.fixture
def work(work: Workplace) -> Workplace:
    """Keys come from the environment of whoever calls: the model server sees which process a call is from."""
    work.configure(batch_size=20, limits=LIMITS, key_env=KEY_VARIABLE)
    return work


def test_workers_share_one_ceiling_and_a_killed_one_loses_and_doubles_nothing(
    stack: PrefectStack, cluster: Cluster, work: Workplace
) -> None:
    """What a dead process has reserved of a ceiling is free after a minute: tests/integration/tasks/runtime."""
    second = cluster.worker("second", **key_of("second"))
    order = command(work, work.dataset(160))
    # Nothing is answered before both have asked
    held = {"latency": HELD_SECONDS, "until": lambda: asked_by("first", work) and asked_by("second", work)}
    work.server.rule(reply='{"action": "BLOCK"}', **held)
    run = stack.open(*order, "--max-calls", "90", **of(cluster))
    limited = json.loads(run.communicate()[0])
    assert (limited["state"], limited["calls"]["made"], work.asked()) == ("incomplete", 90, 90)
    assert set(map(asker, work.server.seen)) == {"first", "second"}

    # The run still asks when its worker is killed: nothing is answered once that has asked for so much
    before, most = committed_by(work, "second"), asked_by("second", work) + CONCURRENCY
    work.server.rule(reply='{"action": "BLOCK"}', latency=HELD_SECONDS, until=lambda: asked_by("second", work) <= most)
    run = stack.open(*order, **of(cluster))
    wait_until(lambda: committed_by(work, "second") > before or run.poll() is not None, "a reply to it", every=1.0)
    assert run.poll() is None, run.communicate()
    second.kill()
    asked, committed = work.asked(), work.committed()
    work.go_faster()
    out, err = run.communicate()
    assert run.returncode == 0, err
    assert json.loads(out)["calls"]["failed"] == 0
    # What the killed worker had asked and was not yet kept is lost.
    assert 160 <= work.asked() <= 160 + 2 * CONCURRENCY
    assert not [request for request in work.server.seen[asked:] if request.content in committed]
    calls = work.rows(CALLS).select(KEY)
    assert calls.height == calls.n_unique() == 160


def test_calls_given_up_on_are_told_and_spans_lead_from_each_call_to_its_run(
    pooled: PrefectStack, collector: Collector, work: Workplace
) -> None:
    work.server.rule(contains="# 0000", faults=({"kind": "server_error", "times": 2},), reply='{"action": "BLOCK"}')
    flow_run = pooled.run(DEPLOYMENT, work.parameters(work.dataset(60)))
    assert pooled.wait_for(flow_run, "Failed", "Completed", "Crashed") == "Failed"
    (first,) = work.rows(RUNS).iter_rows(named=True)
    assert (first["state"], first["calls_made"], first["calls_failed"]) == ("incomplete", 50, 10)
    assert work.rows(CALL_FAILURES)["kind"].to_list() == ["server"] * 10
    spans = wait_until(lambda: spans_of_runs(collector, 60), "the spans of all calls")
    for call in [span for span in spans.values() if span.name.startswith("chat")]:
        batch = spans[call.parent]  # which another process ended than the run's
        assert batch.name.startswith("batch")
        assert spans[batch.parent].name == "evaluate command_guard"
        assert call.trace == batch.trace == spans[batch.parent].trace


def test_a_suspended_run_asks_nothing_more_on_the_cluster_and_goes_on_by_resume(
    pooled: PrefectStack, work: Workplace
) -> None:
    run = SlowRun.of_deployment(pooled, work)
    run.suspend()
    run.has_calmed()
    assert {asker(request) for request in work.server.seen} == {"first"}  # its Dask worker
    assert run.read()["state_name"] == "Suspended"
    assert run.row()["message"].endswith("when resumed, it asks only for what is missing")
    work.go_faster()
    run.resume()
    run.completes()


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"EVALAKE_TASK_RUNNER": "ray"}, "ray"),
        ({"EVALAKE_TASK_RUNNER": "dask"}, "EVALAKE_DASK_SCHEDULER"),
        (NOBODY, "PREFECT_API_URL"),
        ({**NOBODY, "PREFECT_API_URL": "http://127.0.0.1:1/api"}, "tcp://127.0.0.1:1"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_one_line_and_nothing_is_written(
    tmp_path: Path, environment: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No flow begins, so none is used; begun, each would live as long as the process of the tests.
    monkeypatch.setattr("evalake.server.local.server.TemporaryServer", lambda: None)
    server = {PREFECT_API_URL: environment["PREFECT_API_URL"]} if "PREFECT_API_URL" in environment else {}
    with temporary_settings(server):
        done = evalake_here("run", "command_guard", folder=tmp_path, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("evalake: ")]
    assert named in line
    assert list(tmp_path.iterdir()) == []


def asked_by(name: str, work: Workplace) -> int:
    return sum(asker(request) == name for request in list(work.server.seen))


def command(work: Workplace, dataset: str, *options: str) -> list[str]:
    words = ["evalake.cli", "run", "command_guard", "--models", MODEL, "--json", "--dataset", dataset, *options]
    return [*words, "--lake", work.lake.uri, "--config", str(work.configuration), "--out", str(work.folder)]


def spans_of_runs(collector: Collector, calls: int) -> dict[bytes, Span]:
    """The spans of runs that were told of, by id, once they have so many calls, and the batches of these."""
    runs = {span.trace for span in collector.spans if span.name.startswith("evaluate")}
    spans = {span.id: span for span in collector.spans if span.trace in runs}
    found = [span for span in spans.values() if span.name.startswith("chat") and span.parent in spans]
    return spans if len(found) == calls else {}


def of(cluster: Cluster) -> dict[str, str]:
    """The environment of a run that goes to the cluster; its own key opens nothing."""
    return {**cluster.environment, **key_of("flow")}
