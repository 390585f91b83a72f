"""The wheel holds what a user needs and nothing of the tests, and runs outside the checkout."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-cache-dir"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_what_a_user_needs(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "evalake = evalake.cli.main:main" in archive.read(entry_points).decode()
    assert {
        "evalake/suites/command_guard/starter/malicious.jsonl",
        "evalake/suites/session_review/templates/system.md",
        "evalake/suites/session_review/templates/outcome_first/system.md",
        "evalake/suites/session_review/wishes.jsonl",
        "evalake/suites/solidity_audit/canary.jsonl",
        "evalake/reports/templates/page.html.j2",
        "evalake/server/front/index.html",
        "evalake/py.typed",
        "evalake/flows/evaluate.py",
        "evalake/cli/project/prefect.yaml",
        "evalake/cli/project/gitignore",
        "evalake/cli/suites/exact/suite.toml",
        "evalake/docs/sql.md",
        "evalake/storage/lake.py",
    } <= names
    assert not {name.split("/")[0] for name in names} & {"tests", "benchmarks", "docs", "deploy"}


def test_it_runs_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    installed, work = tmp_path / "installed", tmp_path / "work"
    work.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(installed)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "160"}
    where = "import evalake.cli, evalake.suites; print(evalake.cli.__file__, evalake.suites.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", where], cwd=work, env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.count(str(installed)) == 2
    run = [sys.executable, "-m", "evalake.cli", "run", "command_guard", "--limit", "5"]
    done = subprocess.run(run, cwd=work, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert "15 rows landed" in done.stdout
