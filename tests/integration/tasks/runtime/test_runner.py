"""Where batches are called: Dask workers are left without what can stop them for ever."""

import pytest
from distributed import Client, LocalCluster

from evalake.core.errors import LakeError
from evalake.tasks.runtime.runner import SCHEDULER, ClusterError, cluster_errors, processes, stop_dask_profiler
from tests.e2e.processes import wait_until


def test_a_dask_worker_is_not_profiled_once_it_calls_batches() -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        (worker,) = cluster.workers.values()
        profiling = worker.periodic_callbacks["profile"]
        assert profiling.is_running()
        client.submit(stop_dask_profiler, pure=False).result()
        wait_until(lambda: not profiling.is_running(), "the end of profiling", seconds=20)
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
