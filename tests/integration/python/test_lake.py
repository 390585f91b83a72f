"""Python: lakes, runs and requests."""

import inspect
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import evalake
from evalake.cli.help import App
from evalake.cli.options import takes
from evalake.core.errors import UsageError
from evalake.request import OPTIONS, RunRequest
from tests.cases import cases_beside
from tests.integration.storage.recorded_lake import AUDITS, JUDGES, MODELS, SAMPLES

CASES = cases_beside(__file__, "requests.json")

# `import evalake`: what a lake holds, as frames.

WRONG: Any = 5
TEXT: Any = "8"


def test_runs_are_listed_newest_first_and_found_by_name(lake: evalake.Lake) -> None:
    runs = lake.runs("command_guard")
    assert runs.height == 2
    assert lake.find(suite="command_guard").run_id == runs["run_id"][0]
    assert lake.find(runs["run_id"][1]).row["samples"] == SAMPLES // 2
    with pytest.raises(evalake.UsageError, match="has no run nothing"):
        lake.find("nothing")
    with pytest.raises(evalake.UsageError, match="did you mean command_guard"):
        lake.runs("comand_guard")
    assert lake.runs("session_review").height == 0


def test_runs_are_found_by_a_tag(lake: evalake.Lake) -> None:
    (tagged,) = lake.runs(tag="pilot").iter_rows(named=True)
    assert (tagged["tags"], tagged["note"], tagged["samples"]) == (["pilot"], None, SAMPLES // 2)
    assert lake.find(tag="pilot").run_id == tagged["run_id"]
    with pytest.raises(evalake.UsageError, match="has no run of command_guard tagged night"):
        lake.find(suite="command_guard", tag="night")


def test_models_are_compared_and_tables_asked(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    compared = lake.compare(MODELS[1], MODELS[0], run=run.run_id)
    assert compared.row(0, named=True)["difference"] == pytest.approx(0.25)
    counted = lake.sql("select count(*) as n from samples where suite = 'command_guard' and dataset = 'mine'")
    assert counted["n"][0] > 0
    with pytest.raises(evalake.EvalakeError, match="nosuchtable"):
        lake.sql("select * from nosuchtable")


def test_a_lake_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(evalake.UsageError, match="has no run yet"):
        evalake.open(tmp_path / "empty").find()


def test_a_process_that_only_reads_a_lake_needs_no_prefect(tmp_path: Path) -> None:
    code = (
        f"import os, sys, evalake; evalake.open({str(tmp_path)!r}); evalake.Run;"
        "print('prefect' in sys.modules, [name for name in os.environ if 'PREFECT' in name])"
    )
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run([sys.executable, "-c", code], env=usual, capture_output=True, text=True)
    assert done.stdout == "False []\n", done.stderr


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda lake: lake.runs(5), "runs: suite must be a valid string, not 5"),
        (lambda lake: lake.compare("x"), "compare: b is missing: it takes a, b, metric"),
        (lambda lake: lake.gate("x", 5), "gate: rules must be"),
        (lambda lake: lake.sql("from runs", at=5), "sql: at must be a valid dictionary, not 5"),
        (lambda lake: lake.run(5), "--suite must be a valid string, not 5"),
        (lambda _: evalake.open(WRONG), "open_lake: uri must be"),
        (lambda _: evalake.open("l", {"timeout": "9s"}).run("command_guard"), "a run in l reads no storage_options"),
        (lambda _: evalake.evaluate(str, WRONG, "exact", revision="1"), "the samples must be a list, not 5"),
        (lambda _: evalake.evaluate(str, [], "exact", threads=TEXT), "threads must be a number"),
        (lambda _: evalake.evaluate(str, [], "exact", models=["m"]), "evaluate takes no models"),
    ],
)
def test_a_wrong_argument_is_one_sentence(lake: evalake.Lake, call: Any, sentence: str) -> None:
    with pytest.raises(evalake.UsageError) as refused:
        call(lake)
    assert str(refused.value).startswith(sentence)


def test_a_run_stands_for_its_id_and_shows_a_sample(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    gate = lake.gate(run, "accuracy >= 0")
    assert repr(gate).startswith(f"<gate of {run.run_id}: {gate.verdict} (")
    sample = run.samples().row(0, named=True)
    shown = run.show(sample["sample_id"], model=MODELS[0])
    assert sample["input"].split()[0] in shown
    assert len(shown) < len(run.show(sample["sample_id"]))


# A run is asked for in one way: its options are told apart from others, and wrong values are said in one sentence.

FULL: dict[str, Any] = CASES["full"]


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


# A run of a lake: its samples, replies, results and metrics as frames, and how a notebook shows it.


def test_a_run_has_its_samples_replies_results_and_metrics(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    assert run.state == "completed" or run.message
    assert run.samples()["sample_id"].to_list() == [f"s{n}" for n in range(SAMPLES)]
    replies = run.replies()
    assert replies.height == SAMPLES * len(MODELS)
    assert replies["response"].str.contains("action").all()
    results = run.results()
    assert results.group_by("model").len().sort("model")["len"].to_list() == [SAMPLES] * len(MODELS)
    headline = run.headline().filter(model=MODELS[1])
    assert headline["metric"][0] == "balanced_accuracy"
    assert (headline["value"][0], headline["missing"][0]) == (1.0, 0.0)
    assert run.metrics()["metric"][0] == "balanced_accuracy"


def test_it_is_told_in_a_line_held_against_rules_and_drawn(lake: evalake.Lake, tmp_path: Path) -> None:
    run = lake.find(suite="command_guard")
    assert repr(run) == f"<Run {run.run_id} of command_guard: {run.state}, {SAMPLES} samples>"
    assert repr(lake) == f"<Lake {lake.uri}>"
    held = lake.gate(f"{run.run_id}:{MODELS[1]}", "balanced_accuracy >= 0.01 from 2 units")
    assert [check.model for check in held.checks] == [MODELS[1]]
    assert lake.explain(*MODELS[:2], run=run.run_id).parts["part"].n_unique() == 5
    assert lake.power("command_guard", 0.1).rows.height >= 1
    assert "Harmless acceptance against malicious detection" in run.figures()
    assert run.report(tmp_path).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run.labels().is_empty()


def test_replies_hold_the_judges_too(lake: evalake.Lake) -> None:
    run = lake.find(suite="solidity_audit")
    assert run.replies().height == AUDITS * (1 + len(JUDGES))


def test_what_a_notebook_shows_of_a_run_holds_no_markup_of_others(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    shown = run._repr_html_()
    assert "balanced_accuracy" in shown
    hostile = evalake.Run(run.lake, {**run.row, "message": "<script>alert(1)</script>"})
    assert "<script>" not in hostile._repr_html_()
    assert run.run_id in lake._repr_html_()
