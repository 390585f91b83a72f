"""Commands that run: a project, a run, its outcome, Ctrl-C, and what they wait for."""

import errno
import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer
import yaml
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from evalake.cli.outcome import finish
from evalake.cli.terminal import INTERRUPTED, say_first_step
from evalake.cli.up import folder_to_deploy
from evalake.contracts.tables import RUNS
from evalake.core.errors import LakeError
from evalake.request import RunRequest
from evalake.storage.lake import Lake
from evalake.tasks.runtime import runs
from tests.attacks.hostile import markers
from tests.integration.cli.command import ROOT, evalake, evalake_here

# A project that `evalake init` writes: it runs outside the checkout, hides nothing of evalake's, and deploys.

COMMANDS = (f"EVALAKE={sys.executable} -m evalake.cli", f"PREFECT={sys.executable} -m prefect")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    done = evalake_here("init", "mine", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cd mine && evalake run questions" in done.stderr
    assert "docs/" not in done.stderr  # which a project does not have
    assert "cd 'of mine' &&" in evalake_here("init", "of mine", folder=tmp_path).stderr
    return tmp_path / "mine"


def make(project: Path, goal: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A goal of the project's Makefile, by the Python of this test."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    told = {**inherited, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(["make", *COMMANDS, goal], cwd=project, env=told, capture_output=True, text=True, timeout=600)


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


# `evalake run` where it stands: in a folder of others, and without a folder for Prefect.


@pytest.mark.e2e
def test_a_run_in_such_a_folder(hostile: Path) -> None:
    """The real command, with a Prefect server of its own."""
    command = [str(Path(sys.executable).parent / "evalake"), "run", "command_guard", "--first", "1"]
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {**usual, "PREFECT_HOME": str(hostile.parent / "home")}
    done = subprocess.run(command, cwd=hostile, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert markers(hostile) == []


def test_without_a_folder_for_prefect_it_is_said_at_once(tmp_path: Path) -> None:
    done = evalake("run", "command_guard", "--limit", "1", "--json", folder=tmp_path, PREFECT_HOME="/dev/null/home")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("evalake: Prefect cannot write to /dev/null/home (")
    assert not list(tmp_path.glob("lake/*/*.parquet"))


def test_a_dry_run_needs_no_key_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "command_guard", "--models", "openai/gpt-4o-mini", "--limit", "8")
    monkeypatch.setattr("evalake.storage.objects.TemporaryFile", Mock(side_effect=OSError(errno.EROFS, "read-only")))
    done = evalake_here(*words, "--dry-run", folder=tmp_path, OPENAI_API_KEY="")
    assert (done.returncode, "0 of 8 in the ledger, 8 to call" in done.stdout) == (0, True), done.stderr
    assert not (tmp_path / "lake").exists()
    done = evalake_here(*words, folder=tmp_path, OPENAI_API_KEY="")
    assert (done.returncode, "needs a key: set OPENAI_API_KEY" in done.stderr) == (2, True)


# What is printed of a run that did not come to its end: why, and how to go on.


def test_a_run_whose_lake_takes_nothing_any_more_ends_in_the_lakes_own_words(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    begun = runs.Run("r", "command_guard", "run", {}, {}, ["m"], [], 1, 1, datetime.now(UTC))
    runs.save(lake, begun)
    state: State[str] = Failed(data=LakeError("cannot write the table runs: read-only file system"))
    with pytest.raises(LakeError, match="read-only file system"):
        finish(state, "r", RunRequest("command_guard", lake=lake.uri), tmp_path, as_json=True, full=True)
    runs.save(lake, begun.ended("failed"))  # which also forgets it, for the process would mark it as interrupted


@pytest.mark.parametrize("options", [[], ["--trust-folder"]])
def test_the_command_to_go_on_trusts_the_folder_where_the_first_one_did(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    begun = runs.Run("r", "command_guard", "run", {}, {}, ["m"], [], 1, 1, datetime.now(UTC))
    runs.save(lake, begun)
    runs.save(lake, begun.ended("incomplete", message="1 call was given up on"))
    request = RunRequest("command_guard", lake=lake.uri)
    monkeypatch.setattr(sys, "argv", ["evalake", *options, "run", "command_guard"])
    with pytest.raises(typer.Exit):
        finish(Completed(), "r", request, tmp_path, as_json=True, full=True)
    assert capsys.readouterr().err.endswith(f"only for what is missing: {' '.join([request.command, *options])}\n")


def test_what_a_provider_says_of_a_run_steers_no_terminal_and_begins_no_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    begun = runs.Run("r", "command_guard", "run", {}, {}, ["m"], [], 1, 1, datetime.now(UTC))
    runs.save(lake, begun)
    runs.save(lake, begun.ended("incomplete", message="it says \x1b]0;x\x07\nevalake: all is well"))
    with pytest.raises(typer.Exit):
        finish(Completed(), "r", RunRequest("command_guard", lake=lake.uri), tmp_path, as_json=True, full=True)
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "evalake: run r is incomplete: it says \\u001b]0;x\\u0007\\nevalake: all is well"
    assert [line[:20] for line in rest] == ["evalake: to continue"]


# Ctrl-C where nothing is asked: one line and 130, at once; tests/e2e/test_interrupt.py has it amid a run.

CODE = """
import os, signal
from evalake.cli.terminal import end_on_ctrl_c
end_on_ctrl_c()
os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_it_leaves_at_once_where_no_call_is_in_flight_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr.splitlines()[-1].startswith("evalake: interrupted; the replies so far are in the ledger")


# `evalake status` and `evalake down` where nothing runs; tests/e2e/test_up.py has what starts.


@pytest.mark.parametrize("words", [("status",), ("down",)])
def test_where_nothing_runs_it_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = evalake_here(*words, folder=tmp_path)
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path}/lake" in done.stderr


def test_a_suite_that_there_is_not_ends_it_with_one_sentence_and_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "prefect.yaml").write_text("deployments: [{name: nightly, parameters: {suite: comand_guard}}]")
    (tmp_path / "evalake.toml").write_text("")
    done = evalake_here("up", "--trust-folder", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the deployment nightly names the unknown suite 'comand_guard'" in done.stderr
    assert "nothing runs" in evalake_here("status", folder=tmp_path).stderr


def test_a_checkout_is_deployed_and_a_stranger_s_folder_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder_to_deploy(ROOT) == ROOT
    assert folder_to_deploy(tmp_path) is None
    assert "this folder has no prefect.yaml: for schedules, `evalake init DIR`" in capsys.readouterr().err
    (tmp_path / "prefect.yaml").write_text("deployments: []")
    assert folder_to_deploy(tmp_path) is None
    assert "add --trust-folder if it is yours" in capsys.readouterr().err


# Flows that a command runs begin once Prefect can be used, and know who called them.

BEGIN = """
import signal
from evalake.cli.terminal import flows_begun
from evalake.tasks.runtime.form import CALLER
with flows_begun(None):
    print(CALLER.get(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_they_are_called_by_the_command_line_and_end_at_once_with_ctrl_c(tmp_path: Path) -> None:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {**usual, "PREFECT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", BEGIN]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "command line False\n"


# What a person reads while a command begins.


class Terminal(StringIO):
    """A stream on which a person looks."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    say_first_step("run")
    assert err.getvalue() == "reading the suite, its samples and the ledger …\n"


def test_a_file_gets_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := StringIO())
    say_first_step("run")
    assert file.getvalue() == ""


def test_a_command_that_answers_within_a_second_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    say_first_step("runs")
    assert err.getvalue() == ""
