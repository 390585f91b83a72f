"""The end of a process that has run a flow: nothing is looked through for garbage that goes with the process anyway."""

import subprocess
import sys

from tests.integration.cli.command import ROOT

# What is registered first is called last.
LAST = (
    "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > gc.get_count()[0]))\nimport evalake.flows"
)


def test_the_interpreter_looks_for_no_garbage_as_it_ends() -> None:
    done = subprocess.run([sys.executable, "-c", LAST], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_nothing_is_written_as_a_process_ends_that_has_asked_duckdb() -> None:
    asking = "import duckdb, evalake.flows; duckdb.connect().execute('select 1')"
    done = subprocess.run([sys.executable, "-c", asking], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
