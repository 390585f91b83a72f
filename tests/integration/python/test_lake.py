"""`import evalake`: what a lake holds, as frames."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evalake
from tests.integration.storage.recorded_lake import MODELS, SAMPLES

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
        (lambda lake: lake.run("command_guard", models=5), "--models must be"),
        (lambda _: evalake.open(WRONG), "open_lake: uri must be"),
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
