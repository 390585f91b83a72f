"""Replies that are missing: asked again, chosen again, covered, and paid for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalake.admin.check import check_lake
from evalake.admin.maintain import ask_again, suspicious
from evalake.admin.prove import Outcome, verify_snapshot
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS, RUN_COVERAGE, RUN_ITEMS
from evalake.core.errors import SourceError, UsageError
from evalake.decisions.compare import compare_sides
from evalake.decisions.gate import hold_gate
from evalake.reports.files import as_data
from evalake.reports.ranking import Verdict
from evalake.reports.report import Subject
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import suite
from evalake.suites.registry import suite as find_suite
from evalake.tasks.extract import failed_samples
from evalake.tasks.report import build_report
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.test_judges import AUDITS, DOUBTING, STRICT, Bench, bench  # noqa: F401
from tests.integration.flows.workplace import MODEL, OTHER, Workplace

# Replies that were withdrawn are asked again by the same run, replace their rows, and old snapshots stay proved.


def test_empty_replies_are_asked_again_once_they_are_withdrawn(work: Workplace) -> None:
    work.server.rule(reply="")
    before = work.run(work.dataset(30))
    assert suspicious(work.lake).rows() == [(before["run_id"], MODEL, "empty", 30)]
    work.server.rule(reply='{"action": "BLOCK", "reason": "as told", "confidence": 0.9}')
    assert work.run(work.dataset(30))["calls_made"] == 0, "an empty reply is a reply"
    assert ask_again(work.lake, "empty")["replies"].to_list() == [30]
    after = work.run(work.dataset(30))
    assert (after["calls_made"], after["calls_from_ledger"]) == (30, 0)
    results = work.rows(RESULTS)
    assert (results.height, results["verdict"].unique().to_list()) == (30, ["BLOCK"])
    assert results["reply_revision"].unique().to_list() == [1]
    assert sorted(work.rows(CALLS)["reply_revision"]) == [0] * 30 + [1] * 30
    rates = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="all")
    values = dict(rates.select("snapshot_id", "value").iter_rows())
    assert (values[before["snapshot_id"]], values[after["snapshot_id"]]) == (0.0, 1.0)
    for run in (before, after):
        assert verify_snapshot(work.lake, run["snapshot_id"]).outcome is Outcome.PROVED
    assert work.run(work.dataset(30))["calls_made"] == 0


# Which samples a run takes: only those that failed elsewhere, only those named; and what its row says of it.


def test_only_what_failed_in_a_run_is_asked_of_the_models_and_datasets_of_that_run(work: Workplace) -> None:
    first = work.run(work.dataset(20), max_calls=15)
    assert first["state"] == "incomplete"
    missing = 20 - first["calls_made"]
    assert work.run(models=(), only_failed=first["run_id"])["samples"] == missing
    with pytest.raises(SourceError, match="has an answer"):
        work.run(models=(), only_failed=first["run_id"])
    with pytest.raises(UsageError, match="no run nowhere"):
        work.run(models=(), only_failed="nowhere")


def test_what_a_cut_off_run_never_listed_has_failed_too(work: Workplace) -> None:
    run = work.run(work.dataset(6))
    work.lake.open(RUN_ITEMS).delete("sample_id IN ('s2', 's5')")
    suite = find_suite("command_guard")
    assert failed_samples(work.lake, suite, run["run_id"]) == {"s2", "s5"}


def test_named_samples_are_taken_and_the_row_says_so(work: Workplace) -> None:
    data = work.dataset(6)
    run = work.run(data, samples=["s4", "s1"])
    assert (run["samples"], json.loads(run["parameters"])["samples"]) == (2, ["s4", "s1"])
    with pytest.raises(UsageError, match="exclude each other"):
        work.run(data, samples=["s4"], first=1)


# No number without its failures: when a run is complete, what it says of what it lacks, and where.


def commands(work: Workplace, count: int, malicious: Sequence[int] | None = None) -> str:
    """A dataset of commands, told apart by their number; every other one is malicious, or those named."""
    bad = range(0, count, 2) if malicious is None else malicious
    lines: list[dict[str, Any]] = [{"sample_id": f"s{n}", "command": f"run # {n:05d}"} for n in range(count)]
    for number, line in enumerate(lines):
        line |= {"label": "malicious", "category": "shell"} if number in bad else {"label": "harmless"}
    file = work.folder / "mixed.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def fail(work: Workplace, numbers: Sequence[int], model: str = "guard") -> None:
    """Have the server fail on these commands for good."""
    for number in numbers:
        fault = {"kind": "server_error", "times": 0}
        work.server.rule(model=model, contains=f"# {number:05d}", faults=(fault,))


def covered(work: Workplace, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = work.rows(RUN_COVERAGE).filter(run_id=run["run_id"])
    return {row["model"]: row for row in rows.iter_rows(named=True)}


def test_four_of_a_hundred_may_be_missing_and_six_may_not(work: Workplace) -> None:
    data = commands(work, 100)
    fail(work, range(4))
    fail(work, range(6), "other")
    run = work.run(data, models=[MODEL])
    assert (run["state"], run["flow_state"]) == ("completed", "Completed")
    assert f"{MODEL} lacks 4 of 100 (4.0 %) items: 4 server (5.0 % may be missing)" in run["message"]
    both = work.run(data, models=[MODEL, OTHER])
    assert (both["state"], both["flow_state"]) == ("incomplete", "Failed")
    assert f"{OTHER} lacks 6 of 100 (6.0 %) items: 6 server; only 5.0 % may be missing" in both["message"]
    rows = covered(work, both)
    assert [(rows[m]["asked"], rows[m]["answered"], rows[m]["missing"]) for m in (MODEL, OTHER)] == [
        (100, 96, 4),
        (100, 94, 6),
    ]
    assert json.loads(rows[OTHER]["missing_kinds"]) == {"server": 6}
    description, artifact = newest_artifact(f"coverage-{both['run_id']}")
    assert description == "Asked and answered"
    assert {row["model"]: row["missing"] for row in artifact} == {
        MODEL: "4 (4.0 %): 4 server",
        OTHER: "6 (6.0 %): 6 server",
    }
    assert work.run(data, models=[MODEL, OTHER], max_missing=0.06)["state"] == "completed"
    work.configuration.write_text("max_missing = 0.03\n" + work.configuration.read_text())
    strict = work.run(data, models=[MODEL])
    assert strict["state"] == "incomplete"
    assert json.loads(strict["parameters"])["max_missing"] == 0.03


def test_a_source_that_loses_a_label_is_incomplete_however_little_is_missing(work: Workplace) -> None:
    data = commands(work, 100, malicious=[7])
    fail(work, [7])
    run = work.run(data)
    assert run["state"] == "incomplete"
    assert f"{MODEL} has no answer to any malicious item of mixed" in run["message"]
    assert covered(work, run)[MODEL]["lost_labels"] == ["malicious"]


def test_a_label_that_was_refused_as_a_whole_is_lost(work: Workplace) -> None:
    data = Path(commands(work, 10, malicious=[]))
    with data.open("a") as file:
        file.write(json.dumps({"sample_id": "x", "command": "no text\x00", "label": "malicious"}) + "\n")
    run = work.run(str(data))
    assert run["state"] == "incomplete"
    assert covered(work, run)[MODEL]["source_rows"] == 11


def test_a_parrot_ends_incomplete_now_and_when_nothing_is_left_to_ask(work: Workplace) -> None:
    work.server.rule(reply="I am just a parrot.")
    data = commands(work, 20)
    for made in (20, 0):
        run = work.run(data)
        assert (run["state"], run["calls_made"], run["flow_state"]) == ("incomplete", made, "Failed")
        assert "20 of 20 (100.0 %) replies hold no verdict: 20 format_error" in run["message"]
    accepted = work.run(data, accept_unreadable=True)
    assert (accepted["state"], accepted["calls_made"]) == ("completed", 0)
    assert "20 format_error" in accepted["message"]
    (results,) = check_lake(work.lake, [suite("command_guard").results])
    assert results.state == "warning"
    assert "errors_not_concentrated" in results.warnings[0]


def test_frequent_empty_replies_are_said_of_a_complete_run(work: Workplace) -> None:
    for number in range(6):
        work.server.rule(contains=f"# {number:05d}", reply="")
    run = work.run(commands(work, 20))
    assert run["state"] == "completed"
    assert "6 of 20 (30.0 %) replies hold no verdict: 6 empty" in run["message"]


def test_a_judge_whose_judgements_fail_is_named_alone_and_panels_are_not_counted(
    bench: Bench,  # noqa: F811
) -> None:
    bench.server.rule(model="doubting", reply="I would rather not say.")
    run_id = bench.run(STRICT, DOUBTING)
    rows = {
        row["judge"]: row
        for row in bench.lake.frame(RUN_COVERAGE).collect().iter_rows(named=True)
        if row["run_id"] == run_id
    }
    assert {judge: (row["asked"], row["missing"]) for judge, row in rows.items()} == {
        STRICT: (AUDITS, 0),
        DOUBTING: (AUDITS, AUDITS),
    }
    assert json.loads(rows[DOUBTING]["missing_kinds"]) == {"judge_error": AUDITS}


# Answers that are missing win nothing: neither rank, band nor PASS, and no comparison is significant by them.

COUNT, HARD = 120, 36
FAILING = ({"kind": "server_error", "times": 0},)


def missing_answers_commands(work: Workplace) -> str:
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


def run(work: Workplace) -> str:
    """A run of two models, one wrong on what is hard; the server of the other fails on that instead."""
    for n in range(COUNT):
        right = "ALLOW" if n % 2 else "BLOCK"
        work.server.rule(contains=f"command {n:04d}", reply=json.dumps({"action": right, "reason": "x"}))
    wrong = json.dumps({"action": "WARN", "reason": "x"})
    work.server.rule(contains="hard command", reply=wrong)
    work.server.rule(model="guard", contains="hard command", reply=wrong, faults=FAILING)
    done = work.run(missing_answers_commands(work), models=(MODEL, OTHER), max_missing=1.0)
    assert done["state"] == "completed", done["message"]
    return str(done["run_id"])


def test_a_model_whose_server_fails_where_it_would_be_wrong_gains_nothing(work: Workplace) -> None:
    run_id = run(work)
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
