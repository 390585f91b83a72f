"""How a command's process ends: with its exit code, after all that was to happen at its end, and not by half."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, evalake

LEAVE = "import cli, atexit, sys, threading; from cli.leaving import end_quickly, leave; end_quickly(); "


def python(code: str, **streams: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", LEAVE + code], cwd=ROOT, stderr=subprocess.PIPE, text=True, **{"stdout": -1, **streams}
    )


@pytest.mark.parametrize("code", [0, 1, 3, 130])
def test_the_exit_code_is_told(code: int) -> None:
    assert python(f"leave({code})").returncode == code


def test_what_was_written_and_registered_comes_first() -> None:
    threads = "threading.Thread(target=lambda: sys.stdout.write('thread ')).start(); "
    done = python(f"{threads} atexit.register(print, 'registered'); sys.stdout.write('written '); leave(0)")
    assert sorted(done.stdout.split()) == ["registered", "thread", "written"]


def test_another_programs_process_ends_as_ever() -> None:
    code = "import cli; from cli.leaving import leave\ntry:\n leave(3)\nexcept SystemExit:\n pass"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_an_answer_that_could_not_be_written_is_no_success(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        assert python("sys.stdout.write('lost'); leave(0)", stdout=full.fileno()).returncode != 0
    assert evalake("--version", folder=tmp_path).stdout.startswith("evalake ")
