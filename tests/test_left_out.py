"""Tests that need what the machine lacks are left out by name, and counted."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_tests_that_lack_something_are_left_out_by_name_and_all_others_run() -> None:
    """Without a browser its tests are named; those of real data, which nobody misses by mistake, are counted."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
    folders = ["tests/unit/reports", "tests/unit/suites/session_review/sources/test_database.py"]
    named = {name: value for name, value in os.environ.items() if name not in ("EVALAKE_REAL_DATA", "CI")}
    lacking = {**named, "EVALAKE_CHROMIUM": "no-such-browser"}
    done = subprocess.run([*command, *folders], cwd=ROOT, env=lacking, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

    lines = done.stdout.splitlines()
    of_data, of_browser = (number for number, line in enumerate(lines) if "left out: " in line)
    left_out = lines[of_browser + 1 : -1]
    assert "left out: 1 tests that need real data (name its folder with EVALAKE_REAL_DATA)" in lines[of_data]
    why = "that need Chromium (apt-get install chromium-headless-shell)"
    assert f"left out: {len(left_out)} tests {why}" in lines[of_browser]
    assert {name.split("::")[0] for name in left_out} == {"tests/unit/reports/test_looks.py"}
    assert f"({len(left_out) + 1} deselected)" in lines[-1]
    kept = lines[:of_data]
    assert not any("test_looks" in line or "test_a_real_database" in line for line in kept)
    assert {line.split("::")[0] for line in kept} >= {"tests/unit/reports/test_page.py", folders[1]}
