"""A Dask cluster of real processes: a scheduler, and workers that join it."""

from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.e2e.processes import PLAIN, PrefectStack, Process, wait_until
from tests.servers.ports import free_port


class Cluster:
    """A Dask scheduler; workers join it, each with a home of its own, as on machines of their own."""

    def __init__(self, stack: PrefectStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        port, dashboard = free_port(), free_port()
        address = f"tcp://127.0.0.1:{port}"
        self.environment: Mapping[str, str] = {"EVALAKE_TASK_RUNNER": "dask", "EVALAKE_DASK_SCHEDULER": address}
        self._health = f"http://127.0.0.1:{dashboard}/health"
        options = ("--host", "127.0.0.1", "--port", str(port), "--dashboard-address", f"127.0.0.1:{dashboard}")
        self._options = options
        self._processes: list[Process] = []
        self.scheduler = self.start_scheduler()

    def start_scheduler(self) -> Process:
        """Start the scheduler, at the address that it had where it was there before."""
        self.scheduler = self._stack.start("distributed.cli.dask_scheduler", *self._options)
        self._processes.append(self.scheduler)
        wait_until(self._answers, "the start of the Dask scheduler")
        return self.scheduler

    def worker(self, name: str, **environment: str) -> Process:
        """Start a worker without a nanny: when it is killed, it stays dead."""
        worker = self.start_worker(name, **environment)
        wait_until(lambda: "Registered to" in worker.log.read_text(), f"the joining of the worker {name}")
        return worker

    def start_worker(self, name: str, **environment: str) -> Process:
        """The same, without waiting until it has joined."""
        home = str(self._folder / name)
        options = ("--name", name, "--nthreads", "4", "--no-nanny", "--no-dashboard", "--local-directory", home)
        address = self.environment["EVALAKE_DASK_SCHEDULER"]
        worker = self._stack.start("distributed.cli.dask_worker", address, *options, PREFECT_HOME=home, **environment)
        self._processes.append(worker)
        return worker

    def stop(self) -> None:
        """End its processes, which would go on working beside later tests."""
        for process in reversed(self._processes):
            process.stop()

    def _answers(self) -> bool:
        try:
            return httpx.get(self._health, timeout=2, verify=PLAIN).is_success
        except httpx.HTTPError:
            return False
