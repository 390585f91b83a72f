"""One SIGTERM ends a worker, within the time that units and containers give it."""

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import ROOT, PrefectStack, Process, wait_until
from tests.integration.flows.workplace import Workplace

pytestmark = pytest.mark.e2e

GRACE_SECONDS = 20
DEPLOYMENT = "evaluate/command-guard-nightly"


def stop_once(process: Process) -> None:
    """Send SIGTERM once, wait for the end, and kill what is left of its children, as a unit and a container do."""
    children = psutil.Process(process.popen.pid).children(recursive=True)
    process.popen.terminate()
    process.popen.wait(GRACE_SECONDS)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(children)


def test_a_worker_ends_with_its_run_which_a_retry_completes(stack: PrefectStack, work: Workplace) -> None:
    work.server.rule(reply='{"action": "BLOCK"}', latency=1.0)
    work.configure(batch_size=20)
    with stack.pool(DEPLOYMENT) as pool:
        worker = stack.worker(pool=pool)
        run = stack.run(DEPLOYMENT, work.parameters(work.dataset(400)))
        wait_until(lambda: len(work.server.seen) > 30, "some calls")
        stop_once(worker)
        work.server.rule(reply='{"action": "BLOCK"}')
        stack.set_state(run, "SCHEDULED", "AwaitingRetry")
        stack.worker(pool=pool)
        assert stack.wait_for(run, "Completed", "Failed", "Crashed") == "Completed"
    results, calls = work.rows(RESULTS), work.rows(CALLS)
    assert results.height == results.select(*RESULTS.key).unique().height == 400
    assert calls.height == calls.select(KEY).unique().height == 400


def test_a_worker_that_a_script_put_into_the_background_ends_too(stack: PrefectStack) -> None:
    deaf_to_sigint = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    environment = {**os.environ, **stack.environment, "PYTHONUNBUFFERED": "1"}
    with stack.pool(DEPLOYMENT) as pool:
        words = [*deaf_to_sigint, sys.executable, "-m", "evalake.cli", "prefect", "worker", "start", "--pool", pool]
        with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            try:
                assert any("started!" in line for line in worker.stdout)
                worker.terminate()
                worker.wait(GRACE_SECONDS)
            finally:
                worker.kill()
