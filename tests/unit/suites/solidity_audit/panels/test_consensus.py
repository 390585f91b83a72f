"""A panel's word: a strict majority of two answers or more, or what is likelier than not by Dawid and Skene."""

from typing import Any

import pytest

from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.panels.rows import derive
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.panels.material import (
    JUDGES,
    by_dawid_skene,
    derived_of,
    panel,
    poor_and_good,
    said,
)
from tests.unit.suites.solidity_audit.support import SAFE, finding, judgement, line, rows_of, target


@pytest.mark.parametrize(
    ("answers", "found", "undecided"),
    [
        ((True, True, False), True, False),
        ((False, True, False), False, False),
        ((True, True, None), True, False),
        ((True, False, None), None, True),
        ((True, None, None), None, True),
        ((None, None, None), None, True),
        ((True, False), None, True),
    ],
)
def test_a_strict_majority_of_two_answers_or_more_decides(answers: Any, found: bool | None, undecided: bool) -> None:
    row = panel(*map(said, answers))
    assert (row["target_found"], row["panel_undecided"]) == (found, undecided)
    assert row["judge"] == "panel:" + "+".join(JUDGES[: len(answers)])
    assert (row["panel_judges"], row["panel_answers"]) == (len(answers), sum(a is not None for a in answers))


def test_verdicts_have_a_majority_of_their_own() -> None:
    row = panel(said(True, verdict=True), said(True, verdict=False))
    assert (row["target_found"], row["detection_correct"], row["panel_undecided"]) == (True, None, False)
    row = panel(said(False, verdict=None), said(False, verdict=None), said(False, verdict=True))
    assert (row["said_vulnerable"], row["detection_correct"]) == (None, False)


def test_on_a_safe_contract_the_panel_decides_on_the_verdict() -> None:
    clean = judgement(said=False)
    assert panel(clean, clean, truth=SAFE)["panel_undecided"] is False
    assert panel(clean, judgement(said=True), truth=SAFE)["panel_undecided"] is True


def test_dawid_and_skene_follow_the_good_judges_where_poor_ones_have_the_majority() -> None:
    lines = poor_and_good()
    truth = {f"s{number}": number % 2 == 0 for number in range(64)}
    rows, _ = by_dawid_skene(lines)
    assert {row["judge"] for row in rows} == {"panel:dawid_skene:good 1+good 2+poor 0+poor 1+poor 2"}
    for decision in ("target_found", "said_vulnerable"):
        assert {row["sample_id"]: row[decision] for row in rows} == truth
    assert {row["sample_id"]: row["target_match_findings"] == 1 for row in rows} == truth
    by_most = {row["sample_id"]: row["target_found"] for row in derived_of(lines).rows[RESULTS.table]}
    assert sum(by_most[name] != found for name, found in truth.items()) == 8  # where all three err


@pytest.mark.parametrize(("word", "strictly"), [(None, False), (False, False), (True, True)])
def test_a_strict_vote_counts_a_target_in_its_function_or_where_the_judge_calls_its_place_right(
    word: bool | None, strictly: bool
) -> None:
    """Of three judges that found the target, one found a part of it, two name another function."""
    elsewhere = judgement([finding(location_claimed="deposit()")], target())
    perhaps = judgement([finding(location_claimed="deposit()")], target(location_match=word))
    partly = judgement([finding(1, "PARTIAL_MATCH", location_claimed="withdraw()")], target())
    lines = [
        line(0, judged=judged, judge=judge) for judge, judged in zip("abc", (partly, elsewhere, perhaps), strict=True)
    ]
    results, findings = rows_of(lines)
    for way, found in (("majority", True), ("strict", strictly)):
        derived = derive({RESULTS.table: results, FINDINGS.table: findings}, {**DEFAULTS, "aggregation": way})
        (row,) = derived.rows[RESULTS.table]
        assert (row["target_found"], row["panel_undecided"]) == (found, False)
        assert row["judge"] == ("panel:a+b+c" if way == "majority" else "panel:strict:a+b+c")
