"""What callers of a run are copies of: it has imported what each calls with, and starts no thread."""

import json
import subprocess
import sys

from tests.cli.command import ROOT

CODE = """
import json, sys
from cli.environment import prepare
prepare()
from prefect import task_runners
from multiprocessing import forkserver
from core.forks import has_threads
print(task_runners.multiprocessing.get_context("spawn").get_start_method())
(name,) = forkserver._forkserver._preload_modules
before = "litellm" in sys.modules
__import__(name)
wanted = ("flows.evaluate", "litellm", "prefect.task_engine")
print(json.dumps([before, [each in sys.modules for each in wanted], has_threads()]))
"""


def test_it_has_what_calls_need_and_no_thread() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    method, there = done.stdout.splitlines()
    assert method == "forkserver"
    assert json.loads(there) == [False, [True, True, True], False]
