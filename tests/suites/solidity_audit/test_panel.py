"""Panels: majority and median, ties and missing answers, names, and the agreement of their judges."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.solidity_audit.contract import RESULTS
from suites.solidity_audit.further import further_metrics
from suites.solidity_audit.options import DEFAULTS
from suites.solidity_audit.panel import derive, majority, median_of
from tests.suites.solidity_audit.support import (
    SAFE,
    finding,
    frame_of,
    judgement,
    landed,
    line,
    rows_of,
    target,
    values_of,
)

JUDGES = ("a", "b", "c")


def said(found: bool | None, share: float = 1.0, verdict: bool | None = True) -> dict[str, Any] | None:
    """A judgement by its answer on the target; None for a judge error."""
    if found is None:
        return None
    return judgement([finding()] if found else [], target(found, share=share), said=verdict)


def panel(*answers: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The row of a panel of as many judges as there are answers."""
    lines = [line(0, judged=answer, judge=judge, **more) for judge, answer in zip(JUDGES, answers, strict=False)]
    results, _ = rows_of(lines)
    (row,) = derive(results).rows[RESULTS.table]
    return dict(row)


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


def test_scores_are_medians_and_findings_are_not_merged() -> None:
    row = panel(said(True, 0.2), said(True, 0.9), said(True, 0.6))
    assert row["rcir"] == 0.6
    assert row["total_findings"] is None
    assert panel(said(False), said(True, 0.9), said(False))["rcir"] is None


def test_verdicts_have_a_majority_of_their_own() -> None:
    row = panel(said(True, verdict=True), said(True, verdict=False))
    assert (row["target_found"], row["detection_correct"], row["panel_undecided"]) == (True, None, False)
    row = panel(said(False, verdict=None), said(False, verdict=None), said(False, verdict=True))
    assert (row["said_vulnerable"], row["detection_correct"]) == (None, False)


def test_on_a_safe_contract_the_panel_decides_on_the_verdict() -> None:
    clean = judgement(said=False)
    assert panel(clean, clean, truth=SAFE)["panel_undecided"] is False
    assert panel(clean, judgement(said=True), truth=SAFE)["panel_undecided"] is True


def test_one_judge_is_no_panel_and_two_on_different_samples_are_none() -> None:
    alone, _ = rows_of([line(0, judged=said(True)), line(1, judged=said(True))])
    assert derive(alone).rows[RESULTS.table] == []
    apart, _ = rows_of([line(0, judged=said(True), judge="a"), line(1, judged=said(True), judge="b")])
    assert derive(apart).rows[RESULTS.table] == []


def test_a_quarantined_judgement_is_no_answer_but_its_judge_stays_in_the_panel() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    lines += [line(1, judged=said(True), judge="a"), line(1, judged=said(False), judge="b")]
    results, _ = rows_of(lines)
    rows = {row["sample_id"]: row for row in derive(results).rows[RESULTS.table]}
    assert {row["judge"] for row in rows.values()} == {"panel:a+b+c"}
    assert rows["s1"]["panel_undecided"] is True


def test_deriving_again_from_rows_with_the_panel_gives_the_same() -> None:
    results, _ = rows_of([line(0, judged=said(True), judge=judge) for judge in JUDGES])
    first = derive(results).rows[RESULTS.table]
    assert derive(pl.concat([results, landed(first)])).rows[RESULTS.table] == first


def test_an_undecided_sample_leaves_the_rates_and_is_counted() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in "ab"]
    lines += [line(1, judged=said(answer), judge=judge) for judge, answer in (("a", True), ("b", False))]
    results, _ = rows_of(lines)
    derived = landed(derive(results).rows[RESULTS.table])
    frame = derived.with_columns(bonus_confirmed=0, bonus_rejected=0, confidence_bin=pl.lit(None, pl.String))
    values = values_of(frame)
    assert (values["target_detection_rate"]["value"], values["target_detection_rate"]["n"]) == (1.0, 1)
    assert (values["panel_undecided_rate"]["value"], values["panel_undecided_rate"]["n"]) == (0.5, 2)
    assert values["judge_error_rate"]["value"] is None
    assert values["finding_precision"]["value"] is None


@given(st.lists(st.sampled_from([True, False, None]), max_size=9))
def test_a_majority_is_more_than_half_or_none(answers: list[bool | None]) -> None:
    value, decided = majority(answers)
    most = max((answers.count(each) for each in (True, False, None)), default=0)
    assert decided == (len(answers) >= 2 and 2 * most > len(answers))
    if decided:
        assert answers.count(value) == most


def test_the_median_is_of_what_is_known() -> None:
    assert median_of([None, 0.2, 0.4]) == pytest.approx(0.3)
    assert median_of([None]) is None


def with_panel(lines: list[dict[str, Any]]) -> pl.DataFrame:
    frame = frame_of(lines)
    derived = landed(derive(frame).rows[RESULTS.table])
    return pl.concat([frame, derived], how="diagonal")


def test_agreement_is_measured_for_all_judges_and_each_pair() -> None:
    answers = {"a": "1101011010", "b": "1101011000", "c": "1001010010"}
    lines = [
        line(n, judged=said(told == "1", share=0.1 * n), judge=judge)
        for judge, row in answers.items()
        for n, told in enumerate(row)
    ]
    lines[3]["judgement"], lines[3]["judge_error"] = None, "gone"
    rows = further_metrics(with_panel(lines), DEFAULTS, 1)
    found = {(r["slice"], r["slice_value"], r["metric"]): r for r in rows.iter_rows(named=True)}
    assert {r["judge"] for r in found.values() if r["metric"] != "sui_rank_stability"} == {"panel:a+b+c"}
    assert found["all", "", "unanimous_rate"]["n"] == 9
    assert found["all", "", "fleiss_kappa"]["n"] == 9
    assert found["all", "", "krippendorff_alpha"]["n"] == 10
    assert found["judge_pair", "a~b", "percent_agreement"]["value"] == pytest.approx(8 / 9)
    assert found["judge_pair", "a~c", "cohen_kappa"]["n"] == 9
    assert found["judge_pair", "a~b", "pearson_rcir"]["value"] == pytest.approx(1.0)
    for of in (("all", ""), ("judge_pair", "a~b")):
        assert found[*of, "icc_2_1_rcir"]["value"] == pytest.approx(1.0)


def test_replicates_give_test_retest_agreement() -> None:
    first, second = "11001100", "11001111"
    lines = [
        line(n, judged=said(told == "1"), replicate=replicate)
        for replicate, row in enumerate((first, second))
        for n, told in enumerate(row)
    ]
    rows = further_metrics(frame_of(lines), DEFAULTS, 1).filter(pl.col("slice") == "replicate_pair")
    found = {r["metric"]: r for r in rows.iter_rows(named=True)}
    assert found["percent_agreement"]["value"] == pytest.approx(6 / 8)
    assert found["cohen_kappa"]["value"] == pytest.approx(0.5)
    assert found["cohen_kappa"]["slice_value"] == "0~1"
    assert found["cohen_kappa"]["judge"] == "judge"
