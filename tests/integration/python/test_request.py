"""A run is asked for in one way: its options are told apart from others, and wrong values are said in one sentence."""

import inspect
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import evalake
from evalake.cli.help import App
from evalake.cli.options import takes
from evalake.core.errors import UsageError
from evalake.request import OPTIONS, RunRequest

FULL: dict[str, Any] = {
    "models": ["a/b", "c/d"],
    "judges": ["j"],
    "datasets": ["one, two.jsonl", "starter"],
    "limit": 5,
    "replicates": 2,
    "first_replicate": 3,
    "prompt_types": ["direct"],
    "max_cost_usd": 0.5,
    "max_calls": 10,
    "max_missing": 0.0,
    "accept_unreadable": True,
    "day": "2026-03-01",
    "tags": ["night, late", "b"],
    "note": "it is 'mine'",
    "configuration_file": "my.toml",
    "lake": "s3://bucket/lake",
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": 0}, "--limit must be greater than or equal to 1, not 0"),
        ({"max_missing": 5}, "--max-missing must be less than or equal to 1, not 5"),
        ({"max_cost_usd": float("inf")}, "--max-cost must be a finite number, not inf"),
        ({"first_replicate": 1_000_000}, "--first-replicate must be less than 1000000, not 1000000"),
        ({"replicates": "two"}, "--replicates must be a valid integer"),
        ({"day": "tomorrow"}, "--day must be a valid date"),
        ({"models": ["", " "]}, "the models are blank: name some"),
        ({"prompt_types": [" "]}, "the prompt types are blank: name some"),
        ({"samples": [1]}, "--sample must be a valid string, not 1"),
        ({"limt": 3}, "a run has no option 'limt': it has suite, models"),
        ({"limit": 1, "only_failed": "r"}, "--limit and --only-failed exclude each other"),
        ({"first": 1, "samples": ["a"]}, "--first and --sample exclude each other"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        RunRequest("quiz", **given)
    assert str(refused.value).startswith(said)


def test_none_is_the_default_where_a_form_may_leave_a_field_empty() -> None:
    counted = ("replicates", "first_replicate", "accept_unreadable")
    assert RunRequest("quiz", **{name: None for name in FULL if name not in counted}) == RunRequest("quiz")  # type: ignore[arg-type]


def test_the_parameters_of_the_flow_ask_for_the_same() -> None:
    request = RunRequest("quiz", **FULL)
    assert RunRequest(**request.parameters) == request
    assert request.parameters["day"] == "2026-03-01"


def test_the_command_line_asks_for_the_same() -> None:
    request = RunRequest("quiz", **FULL)
    asked: dict[str, Any] = {}
    app = App()

    @app.command()
    @takes(*list(OPTIONS)[1:])
    def run(given: dict[str, Any], suite: str) -> None:
        asked.update(given, suite=suite)

    program, command, *words = shlex.split(request.command)
    done = CliRunner().invoke(app, words)
    assert (program, command, done.exit_code) == ("evalake", "run", 0), done.output
    assert RunRequest(**asked) == request
    assert shlex.split(RunRequest("quiz", lake="l").command) == ["evalake", "run", "quiz", "--lake", "l"]


def test_python_takes_the_options_and_no_other_lake(tmp_path: Path) -> None:
    lake = evalake.open(tmp_path / "lake")
    assert list(inspect.signature(lake.run).parameters) == list(OPTIONS)
    with pytest.raises(UsageError, match="no option 'modles'"):
        lake.run("command_guard", modles=["a"])  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="a run of this lake lands in"):
        lake.run("command_guard", lake="elsewhere")
    assert not (tmp_path / "lake").exists()


def test_a_password_is_not_shown() -> None:
    with pytest.raises(UsageError) as refused:
        RunRequest("quiz", limit="postgresql://me:s3cret@host/db")  # type: ignore[arg-type]
    assert "s3cret" not in str(refused.value)
