"""Ctrl-C: one line and 130, at once; tests/e2e/test_interrupt.py has it in the middle of a run."""

import subprocess
import sys

from cli.interrupt import INTERRUPTED
from tests.cli.command import ROOT

CODE = """
import os, signal
from cli.interrupt import leave_at_once
leave_at_once()
os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_it_leaves_at_once_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr.splitlines()[-1].startswith("evalake: interrupted; what was answered is in the ledger")
