"""Metrics over several rows: agreement, robustness and trivial auditors."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import (
    base_warnings,
    cross_row_metrics,
    divergence,
    robustness,
    warnings,
)
from evalake.suites.solidity_audit.replies import probed
from evalake.suites.solidity_audit.score import score
from evalake.suites.solidity_audit.truth import DEFAULTS, KNOWLEDGE, GroundTruth, always
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit import support
from tests.unit.suites.solidity_audit.panels.material import said, with_panel
from tests.unit.suites.solidity_audit.support import finding, found, frame_of, judgement, line, missed, target

CASES = cases_beside(__file__, "probes.json")

# Metrics across rows: agreement of judges and of replicates, and how firm the ranking of models is.


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


# Robustness: what transformations cost, paired by base; and what a model knew of a base before it read it.


def audit(base: str, how: str | None, found: bool | None, said: bool = True, **more: Any) -> dict[str, Any]:
    fixed = how == "differential"
    return {
        **{"model": "m", "judge": "j", "prompt_type": "direct", "replicate": 0, "cluster": base, "base": base},
        **{"transformation": how, "sample_hash": f"{base} {how}", "vulnerability_type": "reentrancy"},
        **{"is_vulnerable": not fixed, "target_found": None if fixed else found, "said_vulnerable": said},
        **{"detection_correct": said != fixed, "contaminated": None, "subject_error": None},
        **more,
    }


def knew(base: str, contaminated: bool) -> dict[str, Any]:
    return audit(base, None, None, prompt_type=KNOWLEDGE, said_vulnerable=None, contaminated=contaminated)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def test_losses_are_paired_by_base_and_gaps_split_by_what_the_model_knew() -> None:
    """Four bases, all found but the last; a disguise loses the first two, of which the model knew one."""
    rows = [audit(base, "original", base != "d") for base in "abcd"]
    rows += [audit(base, "renamed", base == "c", said=base != "d") for base in "abcd"]
    rows += [audit(base, "false_prophet", base != "d") for base in "abcd"]
    rows += [audit(base, "differential", None, said=base == "a") for base in "abcd"]
    rows += [audit("lonely", "renamed", True), knew("a", True), knew("b", False)]
    given = {
        (row["metric"], row["slice"], row["slice_value"]): (row["value"], row["n"], row["units"])
        for row in robustness(frame(rows)).iter_rows(named=True)
    }
    drop = "robustness_drop_target_detection_rate"
    assert given[drop, "transformation", "renamed"] == (0.5, 4, 4)
    assert given[drop, "transformation", "false_prophet"] == (0.0, 4, 4)
    assert given[drop, "all", ""] == (0.25, 8, 4), "the fixed twin has no target, the lonely variant no base"
    assert given["consistency_rate", "transformation", "renamed"] == (0.75, 4, 4)
    assert given["fix_recognised_rate", "all", ""] == (0.75, 4, 4)
    assert given["memorisation_gap", "all", ""] == (0.5, 4, 4)
    assert given["memorisation_gap", "contaminated", "known"] == (1.0, 1, 1)
    assert given["memorisation_gap", "contaminated", "not known"] == (1.0, 1, 1)
    assert list(base_warnings(frame(rows))) == []


def test_the_least_changed_variant_stands_in_for_a_missing_base_and_that_is_said() -> None:
    rows = frame([audit("a", how, how != "trojan") for how in ("trojan", "no_comments", "sanitized")])
    lost = robustness(rows).filter(pl.col("slice") == "transformation", pl.col("metric").str.contains("target"))
    assert dict(lost.select("slice_value", "value").iter_rows()) == {"no_comments": 0.0, "trojan": 1.0}
    assert list(base_warnings(rows)) == [
        "robustness: 1 bases have no original in this run, and are compared with sanitized"
    ]


@pytest.mark.parametrize(("reply", "incident", "recognised", "contaminated"), CASES["probes"])
def test_a_probe_is_contaminated_if_the_incident_is_named(
    reply: str | None, incident: str | None, recognised: bool | None, contaminated: bool | None
) -> None:
    truth = GroundTruth(is_vulnerable=True, incident=incident)
    assert probed(reply, truth) == {"recognised": recognised, "contaminated": contaminated}


def test_rules_and_models_as_judges_diverge_where_only_one_side_finds_the_target() -> None:
    said = {"baseline/overlap-judge": "1100", "gpt": "1010", "claude": "1011", "tied": "1001"}
    rows = [
        audit(str(n), None, told == "1", judge=judge, vulnerability_type="ab"[n > 1])
        for judge, answers in said.items()
        for n, told in enumerate(answers)
    ]
    given = {(row["metric"], row["slice_value"]): row["value"] for row in divergence(frame(rows)).iter_rows(named=True)}
    assert given["diverges_from_models_rate", ""] == 0.75
    assert (given["rules_alone_found_rate", ""], given["models_alone_found_rate", ""]) == (0.25, 0.5)
    assert given["diverges_from_models_rate", "b"] == 1.0
    assert divergence(frame(rows).filter(pl.col("judge") != "baseline/overlap-judge")).is_empty()


# What a trivial auditor gets follows from the truth alone, whoever was asked.


def trivial(vulnerable: bool, safe_contracts: int = 1) -> pl.DataFrame:
    """The rows of one vulnerable contract and some safe ones, as an auditor that always says the same has them."""
    lines = [
        support.line(0, support.TRUTH, support.found()),
        *(support.line(1 + n, support.SAFE, support.judgement(said=True)) for n in range(safe_contracts)),
    ]
    return support.frame_of(lines).with_columns(**always(vulnerable=vulnerable))


def measured(rows: pl.DataFrame) -> list[float | None]:
    names = ("recall", "accuracy", "target_detection_rate", "finding_precision")
    values = support.values_of(rows, *names)
    return [values[name]["value"] for name in names]


def test_who_calls_everything_vulnerable_misses_nothing_and_who_calls_everything_safe_finds_nothing() -> None:
    assert measured(trivial(vulnerable=True, safe_contracts=3)) == [1.0, 0.25, 0.0, None]
    assert measured(trivial(vulnerable=False)) == [0.0, 0.5, 0.0, None]


@pytest.mark.parametrize("vulnerable", [True, False])
@pytest.mark.parametrize("truth", [support.TRUTH, support.SAFE])
def test_the_columns_are_those_of_the_baseline_that_says_so(vulnerable: bool, truth: GroundTruth) -> None:
    audit = BASELINES["always-vulnerable" if vulnerable else "always-safe"]([])
    judged: dict[str, Any]
    judged = {"findings": []} | ({"target_assessment": support.target(found=False)} if truth.is_vulnerable else {})
    item, answered = support.conversation([judged], audit, prompt_type="direct", sample=support.sample(truth))
    row = support.landed(score(item, answered, {})[RESULTS.table])
    columns = always(vulnerable=vulnerable)
    assert row.with_columns(**columns).select(columns.keys()).equals(row.select(columns.keys()))
