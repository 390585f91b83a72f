"""Panels: majority and median, ties and missing answers, names, and the agreement of their judges."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.audit import audit
from contracts.compile.arrow import conform
from core.errors import ConfigurationError
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.cross_row_metrics import cross_row_metrics
from suites.solidity_audit.metrics import metrics
from suites.solidity_audit.options import DEFAULTS
from suites.solidity_audit.panels.consensus import majority
from suites.solidity_audit.panels.rows import derive, median_of
from suites.solidity_audit.warnings import warnings
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


def derived_of(lines: list[dict[str, Any]]) -> Any:
    """What a panel derives from recorded lines."""
    results, findings = rows_of(lines)
    return derive({RESULTS.table: results, FINDINGS.table: findings}, DEFAULTS)


def panel(*answers: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The row of a panel of as many judges as there are answers."""
    lines = [line(0, judged=answer, judge=judge, **more) for judge, answer in zip(JUDGES, answers, strict=False)]
    (row,) = derived_of(lines).rows[RESULTS.table]
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


def test_scores_are_medians() -> None:
    assert panel(said(True, 0.2), said(True, 0.9), said(True, 0.6))["rcir"] == 0.6
    assert panel(said(False), said(True, 0.9), said(False))["rcir"] is None


def classed(*names: str, **more: Any) -> dict[str, Any]:
    """A judgement that found nothing, whose findings have these classes."""
    return judgement([finding(n, name, **more) for n, name in enumerate(names, 1)], target(False))


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


def test_a_panels_precision_lies_among_its_judges_and_its_index_exists() -> None:
    precise = {"a": 77, "b": 83, "c": 81}
    lines = [
        line(n, judged=classed("BONUS_VALID" if n < of else "HALLUCINATED"), judge=judge)
        for judge, of in precise.items()
        for n in range(100)
    ]
    frame = with_panel(lines).filter(pl.col("judge") == "panel:a+b+c")
    values = values_of(frame.with_columns(bonus_confirmed=0, bonus_rejected=0))
    assert values["finding_precision"]["value"] == pytest.approx(0.81)
    assert values["hallucination_rate"]["value"] == pytest.approx(0.19)
    assert values["sui"]["value"] is not None


def test_a_panels_findings_land_with_what_most_judges_said_and_keep_their_contract() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    derived = derived_of(lines)
    (row,) = derived.rows[RESULTS.table]
    assert (row["type_match"], row["target_match_id"], row["target_credit"]) == ("exact", 1, 1.0)
    (found,) = derived.rows[FINDINGS.table]
    assert (found["judge"], found["classification"]) == ("panel:a+b+c", "TARGET_MATCH")
    rows = conform([{**found, "run_id": "r", "origin": "import"}], FINDINGS)
    assert audit(rows, FINDINGS).bad.is_empty()


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
    alone = [line(0, judged=said(True)), line(1, judged=said(True))]
    apart = [line(0, judged=said(True), judge="a"), line(1, judged=said(True), judge="b")]
    assert derived_of(alone).rows[RESULTS.table] == derived_of(apart).rows[RESULTS.table] == []


def test_a_quarantined_judgement_is_no_answer_but_its_judge_stays_in_the_panel() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    lines += [line(1, judged=said(True), judge="a"), line(1, judged=said(False), judge="b")]
    rows = {row["sample_id"]: row for row in derived_of(lines).rows[RESULTS.table]}
    assert {row["judge"] for row in rows.values()} == {"panel:a+b+c"}
    assert rows["s1"]["panel_undecided"] is True


def test_deriving_again_from_rows_with_the_panel_gives_the_same() -> None:
    results, findings = rows_of([line(0, judged=said(True), judge=judge) for judge in JUDGES])
    first = derive({RESULTS.table: results, FINDINGS.table: findings}, DEFAULTS).rows[RESULTS.table]
    again = pl.concat([results, landed(first)])
    assert derive({RESULTS.table: again, FINDINGS.table: findings}, DEFAULTS).rows[RESULTS.table] == first


def test_an_undecided_sample_leaves_the_rates_and_is_counted() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in "ab"]
    lines += [line(1, judged=said(answer), judge=judge) for judge, answer in (("a", True), ("b", False))]
    derived = landed(derived_of(lines).rows[RESULTS.table])
    frame = derived.with_columns(bonus_confirmed=0, bonus_rejected=0, confidence_bin=pl.lit(None, pl.String))
    values = values_of(frame)
    assert (values["target_detection_rate"]["value"], values["target_detection_rate"]["n"]) == (1.0, 1)
    assert (values["panel_undecided_rate"]["value"], values["panel_undecided_rate"]["n"]) == (0.5, 2)
    assert values["judge_error_rate"]["value"] is None
    assert (values["finding_precision"]["value"], values["finding_precision"]["n"]) == (1.0, 2)
    assert (values["findings_undecided_rate"]["value"], values["findings_undecided_rate"]["n"]) == (0.0, 2)


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
    derived = landed(derived_of(lines).rows[RESULTS.table])
    return pl.concat([frame, derived], how="diagonal")


def test_judges_agree_on_the_classes_of_the_findings_that_both_saw() -> None:
    """Two of three alike, and a fourth that one judge alone saw; the other model's finding counts in the pool."""
    classes = {
        "a": ["TARGET_MATCH", "BONUS_VALID", "INFORMATIONAL"],
        "b": ["TARGET_MATCH", "HALLUCINATED", "INFORMATIONAL"],
    }
    lines = []
    for judge, named in classes.items():
        findings = [finding(number, name) for number, name in enumerate(named, start=1)]
        seen = [*findings, finding(9, "DESIGN_CHOICE")] if judge == "a" else findings
        lines.append(line(0, judged=judgement(seen, target()), judge=judge))
        lines.append(line(0, judged=judgement([finding()], target()), judge=judge, model="other"))
    rows = cross_row_metrics(with_panel(lines), DEFAULTS).filter(pl.col("metric") == "percent_agreement_finding_class")
    agreed = {(row["model"], row["slice"]): (row["value"], row["n"]) for row in rows.iter_rows(named=True)}
    pooled = (pytest.approx(3 / 4), 4)
    assert agreed == {
        ("subject", "judge_pair"): (pytest.approx(2 / 3), 3),
        ("other", "judge_pair"): (1.0, 1),
        ("subject", "judge_pair_pooled"): pooled,
        ("other", "judge_pair_pooled"): pooled,
    }


def test_agreement_is_measured_for_all_judges_and_each_pair() -> None:
    answers = {"a": "1101011010", "b": "1101011000", "c": "1001010010"}
    lines = [
        line(n, judged=said(told == "1", share=0.1 * n), judge=judge)
        for judge, row in answers.items()
        for n, told in enumerate(row)
    ]
    lines[3]["judgement"], lines[3]["judge_error"] = None, "gone"
    rows = cross_row_metrics(with_panel(lines), DEFAULTS)
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
    rows = cross_row_metrics(frame_of(lines), DEFAULTS).filter(pl.col("slice") == "replicate_pair")
    found = {r["metric"]: r for r in rows.iter_rows(named=True)}
    assert found["percent_agreement"]["value"] == pytest.approx(6 / 8)
    assert found["cohen_kappa"]["value"] == pytest.approx(0.5)
    assert found["cohen_kappa"]["slice_value"] == "0~1"
    assert found["cohen_kappa"]["judge"] == "judge"


def test_every_decision_has_its_agreement_of_each_model_and_pooled() -> None:
    both = {"a": "1101011010", "b": "1101011000"}
    lines = [
        line(n, judged=said(told == "1", share=0.1 * n, verdict=told == "1"), judge=judge, model=model)
        for model, flipped in (("one", False), ("two", True))
        for judge, row in both.items()
        for n, told in enumerate(row[::-1] if flipped and judge == "b" else row)
    ]
    rows = cross_row_metrics(with_panel(lines), DEFAULTS)
    found = {(r["model"], r["slice"], r["metric"]): r for r in rows.iter_rows(named=True) if r["slice_value"] == "a~b"}
    of = {model: found[model, "judge_pair", "percent_agreement"] for model in ("one", "two")}
    for model in ("one", "two"):
        pooled = found[model, "judge_pair_pooled", "percent_agreement"]
        assert pooled["n"] == of["one"]["n"] + of["two"]["n"] == 20
        assert pooled["value"] == pytest.approx((of["one"]["value"] + of["two"]["value"]) / 2)
        for decision in ("verdict", "type_match", "location", "bonus"):
            assert {(model, "judge_pair", f"{name}_{decision}") for name in ("cohen_kappa", "gwet_ac1")} <= {*found}
        assert (model, "judge_pair", "icc_2_1_confidence") in found
    assert of["one"]["value"] == found["one", "judge_pair", "percent_agreement_verdict"]["value"] == 0.9


DAWID_SKENE = {**DEFAULTS, "aggregation": "dawid_skene"}


def by_dawid_skene(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """The rows of a panel by Dawid and Skene, and the frame that a snapshot of the run would be of."""
    results, findings = rows_of(lines)
    derived = derive({RESULTS.table: results, FINDINGS.table: findings}, DAWID_SKENE)
    rows = [dict(row) for row in derived.rows[RESULTS.table]]
    return rows, pl.concat([frame_of(lines), landed(rows)], how="diagonal")


def told(judge: str, number: int, found: bool) -> dict[str, Any]:
    """A judge's word on a vulnerable contract's target, with a finding of the class that goes with it."""
    classification = "TARGET_MATCH" if found else "HALLUCINATED"
    judged = judgement([finding(1, classification)], target(found), said=found)
    return line(number, judged=judged, judge=judge)


def poor_and_good() -> list[dict[str, Any]]:
    """Two good judges, and three that call every second target found, together in some audits: 64 audits, half found.

    The three are right as often as wrong, and have no error in common but by chance.
    """
    lines = []
    for number in range(64):
        truth, bits = number % 2 == 0, number // 2
        lines += [told(judge, number, truth) for judge in ("good 1", "good 2")]
        lines += [told(f"poor {place}", number, bool(bits >> place & 1)) for place in range(3)]
    return lines


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


def test_the_error_rates_of_its_judges_stand_with_a_panel_by_dawid_and_skene() -> None:
    _, frame = by_dawid_skene(poor_and_good())
    rows = cross_row_metrics(frame, DAWID_SKENE).filter(pl.col("slice") == "judge_panel")
    panel = "panel:dawid_skene:good 1+good 2+poor 0+poor 1+poor 2"
    assert set(rows["judge"]) == {panel}
    rates = {(row["slice_value"].split("~")[0], row["metric"]): (row["value"], row["n"]) for row in rows.to_dicts()}
    for ending in ("", "_verdict", "_finding_valid"):
        for rate in ("judge_miss_rate", "judge_false_alarm_rate"):
            assert rates["good 1", rate + ending] == (pytest.approx(0, abs=1e-6), 32)
            assert rates["poor 0", rate + ending] == (pytest.approx(0.5, abs=1e-6), 32)


def test_panels_of_either_kind_never_share_a_row_and_a_majority_has_no_error_rates() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    rows, _ = by_dawid_skene(lines)
    by_most = derived_of(lines).rows[RESULTS.table]
    assert {row["judge"] for row in (*rows, *by_most)} == {"panel:a+b+c", "panel:dawid_skene:a+b+c"}
    assert rows[0]["judge_hash"] != by_most[0]["judge_hash"]
    assert "judge_panel" not in set(cross_row_metrics(with_panel(lines), DEFAULTS)["slice"])


def test_a_panel_by_dawid_and_skene_is_of_all_its_judgements() -> None:
    """The same judgements give the same rows; with one audit less it is another pool, though the words are the same."""
    lines = poor_and_good()
    first, again, fewer = (by_dawid_skene(of)[0] for of in (lines, lines[::-1], lines[:-5]))
    hashes = [{row["sample_id"]: row["judge_hash"] for row in rows} for rows in (first, again, fewer)]
    assert hashes[0] == hashes[1]
    assert all(hashes[0][name] != other for name, other in hashes[2].items())
    contracts = conform([{**row, "run_id": "r", "origin": "import"} for row in first], RESULTS)
    assert audit(contracts, RESULTS).bad.is_empty()


def test_two_judges_who_differ_stay_undecided_and_a_snapshot_says_that_they_are_two() -> None:
    lines = [told(judge, number, found) for number in range(9) for judge, found in (("a", True), ("b", False))]
    rows, frame = by_dawid_skene(lines)
    assert {row["panel_undecided"] for row in rows} == {True}
    assert any("two judges do not tell" in sentence for sentence in warnings(frame))


def test_an_aggregation_that_there_is_not_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigurationError, match='"majority" or "dawid_skene"'):
        metrics({**DEFAULTS, "aggregation": "mean"})
