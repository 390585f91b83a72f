"""A judge that fails, and a panel that does not decide, leave a rate open: it wins nothing by them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evalake.admin.import_results import import_recorded
from evalake.decisions.compare import compare_sides
from evalake.decisions.gate import hold_gate
from evalake.lake import open_lake
from evalake.reports.report import Subject
from evalake.server.viewer.run import run_letters
from evalake.server.viewer.run_index import RunIndexes
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.lake import Lake
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.report import build_report
from tests.integration.cli.people import judged

AUDITS, FAILED = 100, 31
RULES = ["target_detection_rate >= 0.75", "target_detection_rate <= 0.4", "judge_error_rate <= 0.1"]


def audit(sample: int, model: str, found: bool | None, judge: str = "judge") -> str:
    """A recorded audit; its judge failed where nobody knows whether the target was found."""
    line = json.loads(judged(sample, model, bool(found))) | {"judge": judge}
    return json.dumps(line if found is not None else line | {"judgement": None, "judge_error": "timeout"})


def imported(folder: Path, lines: list[str]) -> tuple[Lake, str]:
    (folder / "audits.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    return lake, import_recorded(lake, suite("solidity_audit"), [folder / "audits.jsonl"])


def verdicts(lake: Lake, run_id: str, model: str, judge: str, rules: list[str]) -> list[str]:
    gate = hold_gate(lake, f"{run_id}:{model}", rules)
    return [str(check.decision.verdict) for check in gate.checks if check.judge == judge]


def test_judgements_that_failed_are_missing_per_model(tmp_path: Path) -> None:
    """Both models find 60 of 100; the judge failed on 31 audits of one of them, all of them misses."""
    failing: Callable[[int], bool | None] = lambda n: n < 60 if n < AUDITS - FAILED else None  # noqa: E731
    lines = [audit(n, "lucky", failing(n)) for n in range(AUDITS)]
    lake, run_id = imported(tmp_path, [*lines, *(audit(n, "plain", n < 60) for n in range(AUDITS))])
    report = build_report(lake, run_id)
    lacking = report.lacking(Subject("lucky", "judge"))
    assert lacking is not None
    assert (lacking.missing, lacking.items) == (FAILED, AUDITS)
    assert report.lacking(Subject("plain", "judge")) is None
    (listed,) = run_page(lake, WantedRuns()).runs
    assert listed.headline is not None
    assert listed.headline.model == report.subjects[0].model == "plain"
    board = "select model from leaderboard where metric = 'sui' order by place"
    assert query(lake, all_contracts(), board).rows() == [("plain",), ("lucky",)]
    assert verdicts(lake, run_id, "lucky", "judge", RULES) == ["UNDECIDED", "FAIL", "FAIL"]
    assert verdicts(lake, run_id, "plain", "judge", RULES)[:2] == ["FAIL", "FAIL"]
    compared = compare_sides(lake, "lucky", "plain", run_id=run_id, metric="target_detection_rate").rows
    row = compared.filter(slice="all").row(0, named=True)
    assert (row["missing_a"], row["missing_b"], row["p_holm"]) == (0.31, 0.0, None)
    assert row["bound_low"] == pytest.approx(0.0)
    assert row["bound_high"] == pytest.approx(0.31)


def test_a_panel_that_does_not_decide_leaves_the_rate_open(tmp_path: Path) -> None:
    """One judge finds 90 of 100 targets, the other 50: on the 40 where they differ the panel has no majority."""
    lines = [audit(n, "m", n < share, judge) for judge, share in (("mild", 90), ("strict", 50)) for n in range(AUDITS)]
    lake, run_id = imported(tmp_path, lines)
    panel = "panel:mild+strict"
    report = build_report(lake, run_id)
    lacking = report.lacking(Subject("m", panel))
    assert lacking is not None
    assert (lacking.missing, dict(lacking.kinds)) == (40, {"undecided": 40})
    rules = ["target_detection_rate >= 0.7", "target_detection_rate >= 0.3", "target_detection_rate <= 0.35"]
    assert verdicts(lake, run_id, "m", panel, rules) == ["UNDECIDED", "PASS", "FAIL"]
    rules = ["finding_precision >= 0.7", "finding_precision >= 0.3", "hallucination_rate <= 0.3"]
    assert verdicts(lake, run_id, "m", panel, rules) == ["UNDECIDED", "PASS", "UNDECIDED"]  # of findings likewise
    assert lacking.bounds["finding_precision"] == pytest.approx((0.5, 0.9))
    shares = open_lake(lake.uri).find(run_id).headline().filter(judge=panel)["missing"]
    assert set(shares) == {0.4}
    places = {(each.model, each.judge): each.missing for each in run_letters(RunIndexes(lake), run_id)}
    assert places == {("m", "mild"): None, ("m", "strict"): None, ("m", panel): "40.0% missing: 40 undecided"}


def test_a_gate_holds_only_the_pairs_of_model_and_judge_that_were_asked(tmp_path: Path) -> None:
    """As in a round whose tools are judged by rules; a judge that failed throughout stays."""
    lines = [audit(n, "model", n < 30) for n in range(40)] + [audit(n, "tool", n < 30, "rules") for n in range(40)]
    lake, run_id = imported(tmp_path, lines + [audit(n, "tool", None) for n in range(3)])
    held = hold_gate(lake, run_id, ["target_detection_rate >= 0.5"])
    subjects = {(check.model, check.judge, str(check.decision.verdict)) for check in held.checks}
    assert ("model", "rules") not in {each[:2] for each in subjects}
    assert ("tool", "judge", "UNDECIDED") in subjects
