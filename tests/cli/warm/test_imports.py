"""What a warm process imports: all that takes long, and nothing that starts a thread, for then it may not fork."""

import subprocess
import sys

from tests.cli.command import ROOT

CODE = """
import sys
from cli.environment import prepare
prepare()
from core.forks import has_threads
from cli.warm.imports import import_first, import_the_rest
for import_some in (import_first, import_the_rest):
    import_some()
    names = ("prefect.flow_engine", "fastapi", "flows.roadmap", "litellm")
    print([name in sys.modules for name in names], has_threads())
"""


def test_the_engine_comes_first_and_litellm_with_the_rest_and_neither_starts_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True, False, False] False\n[True, True, True, True] False\n"
