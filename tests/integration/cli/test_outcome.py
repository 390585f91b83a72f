"""What is printed of a run that did not come to its end: why, and how to go on."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from evalake.cli.outcome import finish
from evalake.core.errors import LakeError
from evalake.request import RunRequest
from evalake.storage.lake import Lake
from evalake.tasks.runtime import runs


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
