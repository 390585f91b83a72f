"""The rooms: one import root, and only evalake/suites/ knows which suites there are."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.suites.registry import suite_names

ROOT = Path(__file__).resolve().parents[1]
TOP = ("flows", "tasks", "contracts", "storage")
OF_SCORING = (ROOT / "evalake" / "server" / "scoring", ROOT / "flows" / "score_session.py")


def test_no_room_but_suites_names_a_suite() -> None:
    files = [
        file
        for room in (*TOP, "evalake")
        for file in (ROOT / room).rglob("*.py")
        if not any(file.is_relative_to(room) for room in (*OF_SCORING, ROOT / "evalake" / "suites"))
    ]
    assert len(files) > 100
    naming = [
        f"{file.relative_to(ROOT)}: {name}" for file in files for name in suite_names() if name in file.read_text()
    ]
    assert naming == []


@pytest.mark.parametrize("room", TOP)
def test_no_module_has_two_names(room: str) -> None:
    for name, works in ((room, False), (f"evalake.{room}", True)):
        done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode == 0) == works, done.stderr
        assert works or f"import evalake.{room}" in done.stderr.replace("import that name", f"import evalake.{room}")


def test_a_users_modules_do_not_shadow_ours(tmp_path: Path) -> None:
    for name in ("core", "metrics", "tasks", "suites", "contracts", "storage", "flows", "reports"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported instead of evalake')")
    code = "import evalake; evalake.Lake; evalake.Run; from evalake.flows import evaluate; print('whole')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "whole\n", done.stderr
