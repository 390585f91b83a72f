"""A project that `evalake init` writes: it runs outside the checkout, hides nothing of evalake's, and deploys."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from evalake.contracts.tables import RUNS
from evalake.storage.lake import Lake
from tests.integration.cli.command import ROOT, evalake_here

COMMANDS = (f"EVALAKE={sys.executable} -m evalake.cli", f"PREFECT={sys.executable} -m prefect")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    done = evalake_here("init", "mine", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cd mine && evalake run questions" in done.stderr
    assert "cd 'of mine' &&" in evalake_here("init", "of mine", folder=tmp_path).stderr
    return tmp_path / "mine"


def make(project: Path, goal: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A goal of the project's Makefile, by the Python of this test."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    told = {**inherited, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(["make", *COMMANDS, goal], cwd=project, env=told, capture_output=True, text=True, timeout=500)


def test_its_folders_hide_none_of_evalakes_rooms_and_it_overwrites_nothing(project: Path) -> None:
    names = {path.name.removesuffix(".py") for path in project.iterdir()}
    assert names == {"evalake.toml", "prefect.yaml", "Makefile", "my_suites", ".gitignore"}
    assert not names & {path.name for path in ROOT.iterdir() if path.is_dir()}
    settings = project / "evalake.toml"
    settings.write_text("batch_size = 7")
    again = evalake_here("init", project, folder=project)
    assert again.returncode == 2
    assert "overwrites no file" in again.stderr
    assert settings.read_text() == "batch_size = 7"


def test_a_folder_without_a_name_is_wrong_usage(tmp_path: Path) -> None:
    done = evalake_here("init", "", folder=tmp_path)
    assert (done.returncode, [*tmp_path.iterdir()]) == (2, [])
    assert "the folder has no name" in done.stderr


def test_its_suite_runs_as_it_stands(project: Path, prefect_api: str) -> None:
    done = make(project, "run", PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 rows landed" in done.stdout
    (run,) = Lake(str(project / "lake")).frame(RUNS).collect().iter_rows(named=True)
    assert (run["suite"], run["state"]) == ("questions", "completed")


def test_what_it_deploys_are_flows_that_an_installed_evalake_has(project: Path) -> None:
    declared = yaml.safe_load((project / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    assert [each["name"] for each in declared] == ["questions-nightly", "maintenance-daily", "check-daily"]
    for each in declared:
        module, _, name = each["entrypoint"].rpartition(".")  # no path: a project has no folder of flows
        flow = getattr(import_module(module), name)
        assert set(each["parameters"]) <= set(flow.parameters.properties)
