"""Where batches are called: Dask workers are left without what can stop them for ever."""

from distributed import Client, LocalCluster

from tasks.runtime.runner import processes, spare_profiler
from tests.e2e.processes import wait_until


def test_a_dask_worker_is_not_profiled_once_it_calls_batches() -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        (worker,) = cluster.workers.values()
        profiling = worker.periodic_callbacks["profile"]
        assert profiling.is_running()
        client.submit(spare_profiler, pure=False).result()
        wait_until(lambda: not profiling.is_running(), "the end of profiling", seconds=20)
        client.submit(spare_profiler, pure=False).result()  # which has nothing to do any more


def test_outside_of_a_cluster_one_process_calls() -> None:
    spare_profiler()
    assert processes() == 1
