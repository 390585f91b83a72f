"""Answers that are missing win nothing: neither rank, band nor PASS, and no comparison is significant by them."""

import json

import pytest

from evalake.contracts.tables import RUNS
from evalake.decisions.compare import compare_sides
from evalake.decisions.gate import hold_gate
from evalake.reports.files import as_data
from evalake.reports.ranking import Verdict
from evalake.reports.report import Subject
from evalake.tasks.report import build_report
from tests.integration.flows.workplace import MODEL, OTHER, Workplace

pytestmark = pytest.mark.slow

COUNT, HARD = 120, 36
FAILING = ({"kind": "server_error", "times": 0},)


def commands(work: Workplace) -> str:
    """Commands of both labels; the server sees which ones are hard."""
    lines = [
        {
            "sample_id": f"s{n}",
            "command": f"{'hard' if n % 10 < 10 * HARD / COUNT else 'easy'} command {n:04d}",
            "label": "harmless" if n % 2 else "malicious",
        }
        for n in range(COUNT)
    ]
    file = work.folder / "commands.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def run(work: Workplace, *, fails: bool) -> str:
    """A run of two models that are wrong on what is hard; the server of one fails on that instead."""
    for n in range(COUNT):
        right = "ALLOW" if n % 2 else "BLOCK"
        work.server.rule(contains=f"command {n:04d}", reply=json.dumps({"action": right, "reason": "x"}))
    wrong = json.dumps({"action": "WARN", "reason": "x"})
    work.server.rule(contains="hard command", reply=wrong)
    if fails:
        work.server.rule(model="guard", contains="hard command", reply=wrong, faults=FAILING)
    done = work.run(commands(work), models=(MODEL, OTHER), max_missing=1.0)
    assert done["state"] == "completed", done["message"]
    return str(done["run_id"])


def test_a_model_whose_server_fails_where_it_would_be_wrong_gains_nothing(work: Workplace) -> None:
    run_id = run(work, fails=True)
    report = build_report(work.lake, run_id)
    failing, answering = Subject(MODEL), Subject(OTHER)
    assert report.ranking is not None
    assert report.value(failing, report.ranking.quantity).value == 1.0  # of what it answered
    assert set(report.standings[failing].letters or "") & set(report.standings[answering].letters or "")
    decision = report.decision(failing)
    assert decision is not None
    assert decision.verdict is Verdict.UNDECIDED
    assert "missing" in (decision.reason or "")
    (place,) = [each for each in as_data(report)["ranking"] if each["model"] == MODEL]
    assert (place["missing"], place["missing_share"]) == (HARD, HARD / COUNT)
    assert sum(place["missing_kinds"].values()) == HARD

    compared = compare_sides(work.lake, MODEL, OTHER, run_id=run_id, metric="accuracy")
    row = compared.rows.row(0, named=True)
    assert row["missing_a"] == HARD / COUNT
    assert row["ci_low"] <= 0 <= row["ci_high"]
    assert row["p_holm"] is None
    assert "36 of 120 items" in compared.notes[0]

    rules = ["accuracy >= 0.85", "accuracy >= 0.5", "accuracy <= 0.5", "no significant drop in accuracy"]
    gate = hold_gate(work.lake, f"{run_id}:{MODEL}", rules, baseline=f"{run_id}:{OTHER}")
    verdicts = [str(check.decision.verdict) for check in gate.checks]
    assert verdicts == ["UNDECIDED", "PASS", "FAIL", "UNDECIDED"]  # it may be worse by 15 points
    assert gate.checks[0].missing == HARD / COUNT
    assert (gate.checks[0].limit_low or 1.0) < 0.7 < (gate.checks[0].ci_low or 0.0)


def test_where_nothing_is_missing_nothing_is_said_of_it(work: Workplace) -> None:
    run_id = run(work, fails=False)
    assert work.rows(RUNS).height == 1
    report = build_report(work.lake, run_id)
    assert not report.missing
    compared = compare_sides(work.lake, MODEL, OTHER, run_id=run_id, metric="accuracy")
    assert not compared.notes
    assert set(compared.rows["missing_a"]) == {0.0}
