"""Findings of several judges, merged by number or by place and type, are what most of their judges say."""

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.unit.suites.solidity_audit.panels.material import JUDGES, classed, derived_of, panel, said
from tests.unit.suites.solidity_audit.support import finding, judgement, line, target


def test_findings_are_one_by_the_number_that_the_audit_gives_them_and_their_class_is_the_majority() -> None:
    row = panel(
        classed("BONUS_VALID", "HALLUCINATED", "DESIGN_CHOICE"),
        classed("PARTIAL_MATCH", "HALLUCINATED", "OUT_OF_SCOPE"),
        classed("HALLUCINATED", "BONUS_VALID", "DESIGN_CHOICE"),
    )
    # the first is valid, though of which class they do not agree; the second is hallucinated by two of three
    assert (row["total_findings"], row["valid_findings"], row["undecided_findings"]) == (3, 1, 0)
    assert (row["bonus_valid_findings"], row["partial_match_findings"]) == (0, 0)
    assert (row["hallucinated_findings"], row["design_choice_findings"]) == (1, 1)
    assert row["finding_precision"] == pytest.approx(1 / 3)


def test_a_finding_on_which_judges_are_split_leaves_the_denominators_and_is_counted() -> None:
    row = panel(classed("BONUS_VALID", "HALLUCINATED"), classed("HALLUCINATED", "HALLUCINATED"))
    assert (row["total_findings"], row["hallucinated_findings"], row["undecided_findings"]) == (1, 1, 1)
    assert row["finding_precision"] == 0


def test_without_numbers_findings_are_one_by_place_and_type() -> None:
    here = {"location_claimed": "Box.withdraw, line 8", "vulnerability_type_claimed": "reentrancy"}
    near = {"location_claimed": "function withdraw()", "vulnerability_type_claimed": "Reentrancy"}
    else_where = {"location_claimed": "deposit()", "vulnerability_type_claimed": "reentrancy"}
    row = panel(
        judgement([finding(4, "BONUS_VALID", **here)], target(False)),
        judgement([finding(1, "BONUS_VALID", **else_where), finding(2, "INFORMATIONAL", **near)], target(False)),
        judgement([finding(9, "BONUS_VALID", **near)], target(False)),
        prompt_type="naturalistic",
    )
    assert (row["total_findings"], row["valid_findings"], row["invalid_findings"]) == (2, 2, 0)


def test_a_panels_findings_land_with_what_most_judges_said_and_keep_their_contract() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    derived = derived_of(lines)
    (row,) = derived.rows[RESULTS.table]
    assert (row["type_match"], row["target_match_id"], row["target_credit"]) == ("exact", 1, 1.0)
    (found,) = derived.rows[FINDINGS.table]
    assert (found["judge"], found["classification"]) == ("panel:a+b+c", "TARGET_MATCH")
    rows = conform([{**found, "landed_by_run": "r", "origin": "import"}], FINDINGS)
    assert audit(rows, FINDINGS).bad.is_empty()
