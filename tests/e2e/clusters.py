"""A Dask cluster of real processes: a scheduler, and workers that join it."""

from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.e2e.processes import PrefectStack, Process, free_port, wait_until


class Cluster:
    """A Dask scheduler; workers join it, each with a home of its own, as on machines of their own."""

    def __init__(self, stack: PrefectStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        port, dashboard = free_port(), free_port()
        address = f"tcp://127.0.0.1:{port}"
        self.environment: Mapping[str, str] = {"EVALAKE_TASK_RUNNER": "dask", "EVALAKE_DASK_SCHEDULER": address}
        self._health = f"http://127.0.0.1:{dashboard}/health"
        options = ("--host", "127.0.0.1", "--port", str(port), "--dashboard-address", f"127.0.0.1:{dashboard}")
        self._processes = [stack.start("distributed.cli.dask_scheduler", *options)]
        wait_until(self._answers, "the start of the Dask scheduler")

    def worker(self, name: str, **environment: str) -> Process:
        """Start a worker without a nanny: when it is killed, it stays dead."""
        home = str(self._folder / name)
        options = ("--name", name, "--nthreads", "4", "--no-nanny", "--no-dashboard", "--local-directory", home)
        address = self.environment["EVALAKE_DASK_SCHEDULER"]
        worker = self._stack.start("distributed.cli.dask_worker", address, *options, PREFECT_HOME=home, **environment)
        self._processes.append(worker)
        wait_until(lambda: "Registered to" in worker.log.read_text(), f"the joining of the worker {name}")
        return worker

    def stop(self) -> None:
        """End its processes, which would go on working beside later tests."""
        for process in reversed(self._processes):
            process.stop()

    def _answers(self) -> bool:
        try:
            return httpx.get(self._health, timeout=2).is_success
        except httpx.HTTPError:
            return False
