"""The line to the parent: only the child can report on it; tests/service/test_supervised.py has how it ends a child."""

import os
import socket
import subprocess
import sys

from service.lifeline import READY
from tests.e2e.processes import ROOT

CHILD = """
import os, subprocess, sys, threading
from service.lifeline import follow_parent
report = follow_parent()
inner = "import os; print(os.read(0, 1) == b'', flush=True)"  # it has no line, and does not wait for one
subprocess.run([sys.executable, "-c", inner], check=True)
report()
threading.Event().wait()
"""


def test_a_report_comes_from_the_child_alone_and_the_end_of_the_line_ends_the_child() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            cwd=ROOT,
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    with child:
        assert ours.recv(len(READY)) == READY
        ours.close()
        assert child.wait(60) < 0  # by SIGTERM
        assert child.stdout is not None
        assert child.stdout.read() == b"True\n"
