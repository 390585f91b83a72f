"""Runs written for other tools: Inspect's logs and Every Eval Ever, in, out, and in again with the same verdicts."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft7Validator

from evalake.admin.export_results import frozen_items
from evalake.contracts.tables import CALLS
from evalake.core.errors import UsageError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from tests.golden import every_eval_ever as schemas
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported, import_lines
from tests.unit.suites.formats.logs import archive, header, sample

VERDICTS = (
    "select dataset, sample_id, replicate, model, judge, correct, score, value, answer, explanation, input, target, "
    "category, reply, error, input_tokens, output_tokens, latency_ms from {}_results order by all"
)
CALL = {"id": "c1", "function": "add", "arguments": {"x": 2}, "type": "function"}
MESSAGES = [
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "the sum is 5", "tool_call_id": "c1"},
    {"role": "assistant", "content": "5"},
]


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def imported(folder: Path, *files: str) -> Imported:
    folder.mkdir(exist_ok=True)
    done = evalake_here("import", *files, "--json", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return Imported(folder, json.loads(done.stdout))


def exported(run: Imported, style: str) -> Path:
    done = evalake_here("export", "results", run.run, "--format", style, "--out", style, folder=run.folder)
    assert done.returncode == 0, done.stderr
    return run.folder / style


def read_by_inspect(log: Path) -> None:
    """Read a log by Inspect itself, where a Python that has it is named: it needs libraries of other versions."""
    if python := os.environ.get("EVALAKE_INSPECT_PYTHON"):
        code = (
            "import sys; from inspect_ai.log import read_eval_log, recompute_metrics; log = read_eval_log(sys.argv[1]);"
            "said = [s.metrics['accuracy'].value for s in log.results.scores]; recompute_metrics(log);"
            "assert said == [s.metrics['accuracy'].value for s in log.results.scores] and log.samples"
        )
        subprocess.run([python, "-c", code, str(log)], check=True)


def check_every_eval_ever(folder: Path) -> list[dict[str, Any]]:
    """Hold a folder to the published schemas; returns the instances."""
    instances = []
    for file in folder.rglob("*.json"):
        aggregate = json.loads(file.read_text())
        Draft7Validator(schemas.EVAL).validate(aggregate)
        lines = file.with_name(f"{file.stem}_samples.jsonl").read_text().splitlines()
        assert aggregate["detailed_evaluation_results"]["file_path"] == str(
            file.with_name(f"{file.stem}_samples.jsonl").relative_to(folder)
        )
        for line in map(json.loads, lines):
            Draft7Validator(schemas.INSTANCE).validate(line)
            instances.append(line)
    return instances


def test_a_log_of_inspect_comes_back_with_the_same_verdicts_and_conversations(tmp_path: Path) -> None:
    scored = [{**sample(n, "C" if n == 1 else "I"), "epoch": epoch} for n in (1, 2) for epoch in (1, 2)]
    samples = [
        *({**each, "input": "a question"} for each in scored),
        sample(3, messages=MESSAGES, choices=["4", "5"], target="B"),
        sample(4, scores={}, output={}, messages=[], error={"message": "the sandbox died"}),
    ]
    (tmp_path / "x.eval").write_bytes(archive(header(task="sums"), samples))
    first = imported(tmp_path, "x.eval")
    (log,) = exported(first, "inspect").iterdir()
    again = imported(tmp_path / "again", str(log))
    assert again.query(VERDICTS.format("sums")) == first.query(VERDICTS.format("sums"))
    shown = json.loads(log.read_text())["samples"]
    by_id = {(each["id"], each["epoch"]): each for each in shown}
    assert by_id["3", 1]["messages"][1]["tool_calls"] == [CALL]
    assert (by_id["3", 1]["choices"], by_id["3", 1]["target"]) == (["4", "5"], "B")
    assert by_id["4", 1]["scores"] == {}
    read_by_inspect(log)
    instances = check_every_eval_ever(exported(first, "every-eval-ever"))
    assert sorted(
        (each["sample_id"], each["interaction_type"], each["evaluation"]["is_correct"]) for each in instances
    ) == [*[("1", "single_turn", True)] * 2, *[("2", "single_turn", False)] * 2, ("3", "agentic", True)]


def test_instances_of_every_eval_ever_come_in_with_their_headline(tmp_path: Path) -> None:
    samples = [sample(1, "C"), sample(2, "I"), sample(3, "C", messages=MESSAGES)]
    (tmp_path / "x.eval").write_bytes(archive(header(task="sums"), samples))
    first = imported(tmp_path, "x.eval")
    folder = exported(first, "every-eval-ever")
    again = imported(tmp_path / "again", str(folder))
    verdict = "select sample_id, model, judge, correct, score, reply, input from sums_results order by all"
    assert again.query(verdict) == first.query(verdict)
    said = evalake_here("import", str(folder), folder=again.folder).stdout
    assert "figures of Every Eval Ever (evalake): 1 of 1 are equal here (match of sums = 0.666667)" in said


def test_runs_of_any_suite_are_written(tmp_path: Path) -> None:
    lines = [recorded(n, action="BLOCK" if n else "ALLOW") for n in range(2)]
    run = import_lines(tmp_path, "results.jsonl", "command_guard", lines)
    (log,) = exported(run, "inspect").iterdir()
    read_by_inspect(log)
    values = [each["scores"]["command_guard"]["value"] for each in json.loads(log.read_text())["samples"]]
    rows = run.query("select correct from command_guard_results order by sample_id")
    right = [row["correct"] for row in rows]
    assert values == ["C" if each else "I" for each in right]
    instances = check_every_eval_ever(exported(run, "every-eval-ever"))
    assert [each["evaluation"]["is_correct"] for each in instances] == right


def test_a_reply_is_that_of_the_runs_own_endpoint(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    elsewhere = {"endpoint": pl.lit("http://elsewhere"), "response": pl.lit("foreign")}
    ledger.append(lake, lake.frame(CALLS).with_columns(**elsewhere).drop("ledger_version").collect().to_dicts())
    (log,) = exported(Imported(tmp_path, {"run_id": audits.run_id}), "inspect").iterdir()
    assert "foreign" not in log.read_text()
    with pytest.raises(UsageError, match="no answer that could be frozen"):  # its judgements came without the audits
        frozen_items(lake, audits.suite, audits.run_id)


@pytest.mark.real_data
def test_real_logs_come_back_with_the_same_verdicts(real_data: Path, tmp_path: Path) -> None:
    for task, file in (
        ("capitals_choice", "inspect_capitals_choice.eval"),
        ("sums_with_tool", "inspect_sums_with_tool.eval"),
    ):
        first = imported(tmp_path / task, str(real_data / "peers" / file))
        (log,) = exported(first, "inspect").iterdir()
        read_by_inspect(log)
        again = imported(tmp_path / f"{task}-again", str(log))
        assert again.query(VERDICTS.format(task)) == first.query(VERDICTS.format(task))
        assert check_every_eval_ever(exported(first, "every-eval-ever"))
