"""One SIGTERM ends a worker that a script put into the background; tests/e2e/test_recover.py retries its run."""

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from tests.e2e.processes import ROOT, PrefectStack, wait_until
from tests.integration.flows.workplace import Workplace

pytestmark = pytest.mark.e2e

DEPLOYMENT = "evaluate/command-guard-nightly"
DEAF_TO_SIGINT = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # as a script has its background jobs
ITEMS = 400


def stop_once(worker: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM once, wait for the end, and kill what is left of its children, as a unit and a container do."""
    children = psutil.Process(worker.pid).children(recursive=True)
    worker.terminate()
    worker.wait()
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(children)


def test_a_worker_ends_with_its_run(stack: PrefectStack, work: Workplace) -> None:
    work.slow_down(first=20, seconds=5.0)  # four minutes for all of them
    work.configure(batch_size=20)
    environment = {**os.environ, **stack.environment}
    with stack.pool(DEPLOYMENT) as pool:
        begin = [sys.executable, "-m", "evalake.cli", "prefect", "worker", "start", "--pool", pool]
        with subprocess.Popen([*DEAF_TO_SIGINT, *begin], cwd=ROOT, env=environment) as worker:
            try:
                run = stack.run(DEPLOYMENT, work.parameters(work.dataset(ITEMS)))
                wait_until(lambda: work.asked() > 30, "some calls")
                stop_once(worker)
                assert work.asked() < ITEMS  # it did not wait for the run's end
            finally:
                worker.kill()
        stack.set_state(run, "CRASHED", "Crashed")  # or the next run of the deployment would wait for it
