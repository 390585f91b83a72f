"""A run of a lake: its samples, replies, results and metrics as frames, and how a notebook shows it."""

from pathlib import Path

import evalake
from tests.integration.storage.recorded_lake import AUDITS, JUDGES, MODELS, SAMPLES


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
