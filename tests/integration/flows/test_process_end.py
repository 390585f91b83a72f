"""The end of a process that has run a flow: nothing is looked through for garbage that goes with the process anyway."""

import subprocess
import sys

from tests.integration.cli.command import ROOT

# What is registered first is called last.
LAST = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > gc.get_count()[0]))
import duckdb, evalake.flows
duckdb.connect().execute("select 1")
"""


def test_the_interpreter_looks_for_no_garbage_as_it_ends_and_duckdb_writes_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LAST], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
