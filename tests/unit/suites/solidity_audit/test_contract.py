"""The contract refuses a row that contradicts itself, by the rule that says how, and no good one."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.unit.suites.solidity_audit.judgements import CONTRADICTIONS, GOOD
from tests.unit.suites.solidity_audit.support import finding, found, judgement, line, rows_of, target


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_each_contradiction_breaks_the_rule_that_names_it(rule: str) -> None:
    results, findings = rows_of([line(judged=CONTRADICTIONS[rule])])
    audited = audit(results, RESULTS)
    assert audited.good.is_empty()
    assert rule in audited.bad["broken"][0]
    assert set(audited.bad["broken"][0]) <= {rule, "calibration_error_is_share"}
    assert findings.is_empty(), "the findings of a refused judgement must not land either"


def test_a_good_judgement_keeps_every_rule() -> None:
    results, findings = rows_of([line(judged=GOOD)])
    assert audit(results, RESULTS).bad.is_empty()
    assert audit(findings, FINDINGS).good.height == 1


def broken(**columns: Any) -> list[str]:
    """The rules that a good row breaks when these columns are otherwise."""
    results, _ = rows_of([line(judged=GOOD)])
    changed = results.with_columns(pl.lit(value, results.schema[name]).alias(name) for name, value in columns.items())
    return [rule for rules in audit(changed, RESULTS).bad["broken"] for rule in rules]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"valid_findings": 2}, "valid_within_total"),
        ({"panel_judges": 1, "panel_answers": 2}, "answers_within_panel"),
        ({"contradictions": "found is true, but …", "origin": "call"}, "asked_judgement_agrees_with_itself"),
        ({"location_line_iou": 1.5}, "location_line_iou_is_share"),
        ({"finding_precision": -0.1}, "finding_precision_is_share"),
        ({"hallucinated_findings": -1}, "hallucinated_findings_not_negative"),
        ({"cost_usd": -0.1}, "cost_usd_not_negative"),
        ({"cluster": " "}, "cluster_not_blank"),
        ({"severity": ""}, "severity_not_blank"),
        ({"audit_hash": "abc"}, "audit_hash_is_sha256"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_the_rule_that_says_why(columns: dict[str, Any], rule: str) -> None:
    assert broken(**columns) == [rule]


def test_what_nobody_can_be_asked_about_any_more_is_kept() -> None:
    """A recorded judgement lands with its further contradictions; what is unknown is null and breaks nothing."""
    assert broken(contradictions="found is true, but …", origin="import") == []
    assert broken(severity=None, vulnerability_type=None, confidence=None, cost_usd=None) == []


def test_a_verdict_stands_for_a_call_given_up_on_until_a_reply_comes(tmp_path: Path) -> None:
    first, _ = rows_of([line(judged=found())])
    given_up = first.with_columns(judge_error=pl.lit("timeout"), judgement_hash=pl.lit(None, pl.String))
    another = first.with_columns(rcir=pl.lit(0.25))
    lake = Lake(str(tmp_path / "lake"))
    for rows, error, score in (
        (given_up, "timeout", 1.0),
        (first, None, 1.0),
        (given_up, None, 1.0),
        (another, None, 1.0),
    ):
        land(lake, RESULTS, rows)
        assert lake.frame(RESULTS).collect().select("judge_error", "rcir").rows() == [(error, score)]


def test_a_finding_is_one_of_its_judgement() -> None:
    judged = judgement([finding(), finding(2, "HALLUCINATED")], target())
    _, findings = rows_of([line(judged=judged, judge=judge) for judge in "ab"])
    assert findings.select(FINDINGS.key).is_unique().all()
    assert findings.height == 4
    assert audit(findings.with_columns(judge=pl.lit(" ")), FINDINGS).good.is_empty()
