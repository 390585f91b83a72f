"""Ctrl-C where nothing is asked: one line and 130, at once; tests/e2e/test_interrupt.py has it amid a run."""

import subprocess
import sys

from evalake.cli.terminal import INTERRUPTED
from tests.integration.cli.command import ROOT

CODE = """
import os, signal
from evalake.cli.terminal import end_on_ctrl_c
end_on_ctrl_c()
os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_it_leaves_at_once_where_no_call_is_in_flight_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr.splitlines()[-1].startswith("evalake: interrupted; the replies so far are in the ledger")
