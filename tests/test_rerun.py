"""After a test failed or a process crashed, `--not-passed` runs what has not passed, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "test_calm.py": "def test_calm(): pass\n",
    "test_wild.py": (
        "import os\n"
        "def test_before(): pass\n"
        "def test_wild():\n"
        "    if os.environ.get('WILD') == 'crash':\n"
        "        os.abort()\n"
        "    assert 'WILD' not in os.environ\n"
        "def test_after(): pass\n"
    ),
}
SHARED = ("--numprocesses", "2", "--dist", "loadfile", "--max-worker-restart", "0")


def test_what_a_crash_kept_from_running_is_run_and_nothing_else(tmp_path: Path) -> None:
    _write(tmp_path)
    crashed = _run(tmp_path, *SHARED, wild="crash")
    assert "worker restarting disabled" in crashed.stdout
    again = _run(tmp_path, *SHARED, "--not-passed")
    assert (again.returncode, _passed(again)) == (0, {"test_wild", "test_after"})
    nothing = _run(tmp_path, *SHARED, "--not-passed")
    assert (nothing.returncode, _passed(nothing)) == (0, set())


def test_a_test_that_fails_is_run_until_it_passes(tmp_path: Path) -> None:
    _write(tmp_path)
    for options in ((), ("--not-passed",)):
        assert _run(tmp_path, *options, wild="fail").returncode == 1
    again = _run(tmp_path, "--not-passed")
    assert (again.returncode, _passed(again)) == (0, {"test_wild"})
    assert _passed(_run(tmp_path)) == {"test_calm", "test_before", "test_wild", "test_after"}


def test_where_pytest_keeps_nothing_tests_run_and_what_has_not_passed_cannot_be_asked_for(tmp_path: Path) -> None:
    _write(tmp_path)
    assert _passed(_run(tmp_path, "-p", "no:cacheprovider")) == {"test_calm", "test_before", "test_wild", "test_after"}
    refused = _run(tmp_path, "-p", "no:cacheprovider", "--not-passed")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--not-passed needs what pytest keeps" in refused.stderr


def _write(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)


def _run(folder: Path, *options: str, wild: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    needed = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    whole = environment | needed | ({"WILD": wild} if wild else {})
    plugins = ["-p", "xdist", "-p", "tests.rerun"]
    command = [sys.executable, "-m", "pytest", *plugins, "--verbose", "--rootdir", str(folder), *options]
    return subprocess.run(command, cwd=folder, env=whole, capture_output=True, text=True)


def _passed(done: "subprocess.CompletedProcess[str]") -> set[str]:
    lines = [line for line in done.stdout.splitlines() if "PASSED" in line]
    return {word.rpartition("::")[2] for line in lines for word in line.split() if "::" in word}
