"""A process with threads is not forked."""

import subprocess
import sys

import pytest

from tests.cli.command import ROOT

WAITING = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
NATIVE = "import polars; polars.DataFrame({'a': [1]}).lazy().select(polars.col('a').sum()).collect()"


@pytest.mark.parametrize(("code", "has"), [("", False), ("import polars", False), (WAITING, True), (NATIVE, True)])
def test_threads_of_python_and_of_libraries_are_seen(code: str, has: bool) -> None:
    code += "\nfrom core.forks import has_threads\nprint(has_threads())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{has}\n"
