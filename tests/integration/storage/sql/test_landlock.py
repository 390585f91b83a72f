"""Confinement: a process reads what it was let, lists what it was let, and neither writes nor runs anything else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.storage.sql.start import confine, landlock_version

CONFINED = """
import json, os, sys
from evalake.storage.sql.start import confine

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

folder = sys.argv[1]
held = confine([folder + "/readable", folder + "/absent"], [folder + "/listable"])
print(json.dumps({
    "held": held,
    "read": attempt(lambda: open(folder + "/readable/file").read()),
    "write": attempt(lambda: open(folder + "/readable/new", "w")),
    "list": attempt(lambda: os.listdir(folder + "/listable")),
    "read what may be listed": attempt(lambda: open(folder + "/listable/file").read()),
    "list what is beside": attempt(lambda: os.listdir(folder)),
}))
"""


@pytest.mark.usefixtures("landlock")
def test_a_process_is_held_to_what_it_was_let(tmp_path: Path) -> None:
    for name in ("readable", "listable"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    done = subprocess.run([sys.executable, "-c", CONFINED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "held": True,
        "read": "done",
        "write": "PermissionError",
        "list": "done",
        "read what may be listed": "PermissionError",
        "list what is beside": "PermissionError",
    }


def test_where_the_kernel_has_none_nothing_is_confined_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock_version() == 0
    assert confine(["/"]) is False
