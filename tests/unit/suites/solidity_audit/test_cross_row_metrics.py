"""Metrics across rows: agreement of judges and of replicates, and how firm the ranking of models is."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics, warnings
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.panels.material import said, with_panel
from tests.unit.suites.solidity_audit.support import finding, found, frame_of, judgement, line, missed, target


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_panel_of_many_judges_is_measured_as_a_whole_and_says_that_its_pairs_are_not() -> None:
    judges = [f"judge-{number:02d}" for number in range(38)]
    lines = [line(n, judged=said(n == 0), judge=judge) for judge in judges for n in range(2)]
    frame = with_panel(lines)
    rows = cross_row_metrics(frame, DEFAULTS)
    unanimous = rows.filter(pl.col("metric") == "unanimous_rate")
    assert (unanimous["value"][0], unanimous["n"][0]) == (1.0, 2)
    assert not {"judge_pair", "judge_pair_pooled"} & {*rows["slice"]}
    assert any("a panel of 38 judges" in warning for warning in warnings(frame))


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


def stability(lines: list[dict[str, Any]]) -> dict[str, Any]:
    rows = cross_row_metrics(frame_of(lines), DEFAULTS).filter(pl.col("metric") == "sui_rank_stability")
    return {row["model"]: (row["value"], row["n"]) for row in rows.iter_rows(named=True)}


def test_a_ranking_that_every_weight_set_agrees_on_is_stable() -> None:
    lines = [line(n, judged=found(0.9), model="best") for n in range(4)]
    lines += [
        line(n, judged=found(0.5, extra=1) if n % 2 else missed(finding(1, "HALLUCINATED")), model="mid")
        for n in range(4)
    ]
    lines += [line(n, judged=missed(finding(1, "HALLUCINATED"), said=False), model="worst") for n in range(4)]
    assert stability(lines) == {name: (pytest.approx(1.0), 3) for name in ("best", "mid", "worst")}


def test_a_ranking_that_depends_on_the_weights_is_not() -> None:
    lines = [line(n, judged=found(0.1, extra=5), model="finder") for n in range(4)]
    lines += [
        line(n, judged=missed(finding(1, "BONUS_VALID"), said=False, confidence=0.0), model="precise") for n in range(4)
    ]
    measured = stability(lines)
    assert measured["finder"] == (pytest.approx(-1.0), 2)


def test_one_model_has_no_ranking() -> None:
    assert stability([line(0, judged=found())]) == {"subject": (None, 1)}
