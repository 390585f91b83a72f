"""A process that forks for its callers, with nothing imported: whom it waits for, and why it ends."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import ROOT

OURS = {**os.environ, "PYTHONPATH": str(ROOT)}
WARM = """
import socket, sys
from pathlib import Path
from cli.warm.client import address
from cli.warm.copies import End, await_request, take_the_callers_place
from cli.warm.likeness import likeness
listener = socket.socket(socket.AF_UNIX)
with address(Path(".")) as place:
    listener.bind(place)
listener.listen()
print("ready", flush=True)
request = await_request(listener, likeness(), owner=0, {limits})
if isinstance(request, End):
    print(request.name)
else:
    take_the_callers_place(request)
    print("a copy", sys.argv[1:], flush=True)
    sys.exit(7)
"""
CALLER = """
import sys
from pathlib import Path
from cli.warm.client import carry_out
sys.exit(carry_out(Path(".")))
"""


@contextmanager
def warm(folder: Path, limits: str = "") -> Iterator["subprocess.Popen[str]"]:
    """A warm process that callers in the folder reach."""
    words, pipe = [sys.executable, "-c", WARM.format(limits=limits)], subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, env=OURS, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def call(folder: Path, word: str) -> "subprocess.CompletedProcess[str]":
    """Start a caller, and wait for its end."""
    words = [sys.executable, "-c", CALLER, word]
    return subprocess.run(words, cwd=folder, env=OURS, capture_output=True, text=True, timeout=300)


def test_each_caller_gets_a_copy_until_as_many_have_come_as_are_wanted(tmp_path: Path) -> None:
    with warm(tmp_path, "most=2") as process:
        for word in ("one", "two"):
            done = call(tmp_path, word)
            assert (done.stdout, done.stderr, done.returncode) == (f"a copy [{word!r}]\n", "", 7)
        assert process.communicate(timeout=300)[0] == "ENOUGH_CAME\n"


@pytest.mark.parametrize("limits", ["", "idle_seconds=0.1"])
def test_it_ends_with_its_owner_and_where_nobody_comes(tmp_path: Path, limits: str) -> None:
    with warm(tmp_path, limits) as process:
        assert process.stdin is not None
        if not limits:
            process.stdin.close()
        assert process.wait(timeout=300) == 0
        assert process.stdout is not None
        assert process.stdout.read() == "NOBODY_COMES\n"
