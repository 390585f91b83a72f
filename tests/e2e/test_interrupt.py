"""Ctrl-C in the middle of a run: calls in flight end and are kept; a second one ends it at once."""

import signal
import subprocess

import pytest

from evalake.contracts.tables import CALLS, RUNS
from evalake.reports.coverage import NOT_ASKED
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.coverage import coverage_of
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.flows.workplace import LIMITS, MODEL, Workplace

pytestmark = pytest.mark.e2e

HELD_SECONDS = 3600.0


def begin(stack: PrefectStack, work: Workplace, items: int) -> "subprocess.Popen[str]":
    words = ["evalake.cli", "run", "command_guard", "--models", MODEL, "--dataset", work.dataset(items)]
    at = ["--lake", work.lake.uri, "--config", str(work.configuration), "--out", str(work.folder)]
    return stack.open(*words, *at)


def test_an_interrupted_run_keeps_what_was_answered(stack: PrefectStack, work: Workplace) -> None:
    work.slow_down(100, HELD_SECONDS)
    process = begin(stack, work, 400)
    wait_until(lambda: work.asked() > 100 or process.poll() is not None, "a hundred requests")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("calls in flight are finishing; press Ctrl-C again to stop at once" in line for line in process.stderr)
    work.go_faster()
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert err.splitlines()[-1].startswith("evalake: interrupted")
    assert "Traceback" not in err
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["message"].split(";")[0]) == ("failed", "interrupted")

    committed, asked = work.rows(CALLS).height, work.asked()
    assert run["calls_made"] == committed
    assert run["cost_usd"] == pytest.approx(work.rows(CALLS)["cost_usd"].sum())
    assert committed == asked  # what was in flight, too
    assert work.rows(RESULTS).height == run["items_done"] == committed
    (covered,) = coverage_of(work.lake, run)
    assert (covered.answered, covered.missing_kinds) == (committed, {NOT_ASKED: 400 - committed})


def test_a_second_one_waits_for_no_call(stack: PrefectStack, work: Workplace) -> None:
    work.slow_down(0, HELD_SECONDS)
    work.configure(limits=LIMITS.replace("timeout_seconds = 600", "timeout_seconds = 900"))
    process = begin(stack, work, 4)
    wait_until(lambda: work.asked() == 4 or process.poll() is not None, "four requests")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("4 calls in flight are finishing" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err.splitlines()[-1][:20]) == (130, "evalake: interrupted")
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"], run["items_done"]) == ("failed", 0, 0)
