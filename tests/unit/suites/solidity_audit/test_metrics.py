"""Metrics by hand: the weaknesses they answer, the edges, who leaves which denominator."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.metrics.compute import definition_hash
from evalake.metrics.limits import open_bounds
from evalake.suites.solidity_audit.cross_row_metrics import warnings
from evalake.suites.solidity_audit.metrics import SLICES, metrics
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS, COMPONENTS, DEFAULTS
from tests.unit.suites.solidity_audit.people.material import on_finding
from tests.unit.suites.solidity_audit.support import (
    SAFE,
    TRUTH,
    finding,
    found,
    frame_of,
    judgement,
    line,
    missed,
    rows_of,
    target,
    values_of,
)

LOCATION = ("location_function_rate", "location_line_hit_rate", "location_line_iou")


def value(frame: pl.DataFrame, name: str, **options: Any) -> Any:
    return values_of(frame, name, **options)[name]["value"]


def test_every_metric_has_every_slice_and_a_definition() -> None:
    declared = metrics(DEFAULTS)
    assert len({metric.name for metric in declared}) == len(declared) >= 60
    assert all(set(SLICES) <= set(metric.slices) for metric in declared)
    assert {metric.tier for metric in declared} == {None, 1, 2, 3, 4, 5, 6, 7}
    changed = {**DEFAULTS, "sui_weights": dict.fromkeys(COMPONENTS, 1.0)}
    assert definition_hash(declared) != definition_hash(metrics(changed))
    assert {*SUITE.metrics.headline} <= {metric.name for metric in declared}


def test_one_weak_factor_does_not_collapse_the_geometric_score() -> None:
    """90 % of targets found, reasoning of 0.9, half of the findings invalid."""
    lines = [line(n, judged=found(0.9, extra=1)) for n in range(9)]
    lines.append(line(9, judged=missed(finding(1, "BONUS_VALID"), finding(2, "HALLUCINATED"))))
    frame = frame_of(lines)
    assert value(frame, "true_understanding_score") == pytest.approx(0.9 * 0.9 * 0.5)
    assert value(frame, "true_understanding_geometric") == pytest.approx((0.9 * 0.9 * 0.5) ** (1 / 3))
    assert value(frame, "true_understanding_geometric") > 0.7


def test_a_partial_match_earns_half() -> None:
    partial = missed(finding(1, "PARTIAL_MATCH"), finding(2, "DESIGN_CHOICE"))
    values = values_of(frame_of([line(0, judged=found()), line(1, judged=partial), line(2, judged=missed())]))
    assert values["target_credit"]["value"] == pytest.approx(0.5)
    assert values["target_detection_rate"]["value"] == pytest.approx(1 / 3)
    assert values["finding_precision_weighted"]["value"] == pytest.approx(1.5 / 3)
    assert values["finding_precision"]["value"] == pytest.approx(2 / 3)


def test_a_critical_target_weighs_more_than_a_low_one() -> None:
    critical, low, odd = (TRUTH.model_copy(update={"severity": s}) for s in ("critical", "low", "catastrophic"))
    frame = frame_of([line(0, critical, found()), line(1, low, missed()), line(2, odd, missed())])
    name = "target_detection_rate_severity_weighted"
    row = values_of(frame, name)[name]
    assert row["value"] == pytest.approx(3 / 3.5)
    assert row["n"] == 2, "an unknown severity leaves the metric"


def test_adaptive_bins_see_what_equal_bins_hide() -> None:
    """Confidences of 0.91 and 0.99 share one of ten equal bins; one is always wrong, the other always right."""
    lines = [line(n, judged=found(confidence=0.99)) for n in range(50)]
    lines += [line(50 + n, judged=missed(said=False, confidence=0.91)) for n in range(50)]
    values = values_of(frame_of(lines))
    assert values["ece"]["value"] == pytest.approx(0.45)
    assert values["ece_adaptive"]["value"] == pytest.approx((0.01 + 0.91) / 2)


@pytest.mark.parametrize(
    ("location", "function", "hit", "iou"),
    [
        ("withdraw() lines 8-10", True, True, 2 / 3),
        ("Box.withdraw", True, False, 0.0),
        ("lines 13-15", False, True, 0.0),
        ("lines 15-16", False, False, 0.0),
        ("deposit(), L8", False, True, 1 / 2),
        (None, False, False, 0.0),
    ],
)
def test_locations_are_compared_by_function_and_line(location: Any, function: bool, hit: bool, iou: float) -> None:
    judged = judgement([finding(location_claimed=location)], target())
    values = values_of(frame_of([line(0, judged=judged)]), *LOCATION)
    assert values["location_function_rate"]["value"] == float(function)
    assert values["location_line_hit_rate"]["value"] == float(hit)
    assert values["location_line_iou"]["value"] == pytest.approx(iou)


def test_a_location_five_lines_off_is_no_hit_and_one_three_lines_off_is() -> None:
    single = TRUTH.model_copy(update={"vulnerable_lines": [20]})
    for lines_off, hit in ((5, 0.0), (4, 0.0), (3, 1.0), (-3, 1.0)):
        judged = judgement([finding(location_claimed=f"line {20 + lines_off}")], target())
        assert value(frame_of([line(0, single, judged)]), "location_line_hit_rate") == hit


def test_without_known_lines_or_functions_location_is_undefined() -> None:
    bare = TRUTH.model_copy(update={"vulnerable_lines": [], "vulnerable_functions": []})
    values = values_of(frame_of([line(0, bare, found())]), *LOCATION)
    for name in LOCATION:
        assert (values[name]["value"], values[name]["n"]) == (None, 0)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], (1 + 0.5) / 2),
        ([("BONUS_VALID", "ann")], (1 + 1) / 2),
        ([("HALLUCINATED", "ann")], 1 / 2),
        ([("BONUS_VALID", "ann"), ("INFORMATIONAL", "bob")], (1 + 0.5) / 2),
    ],
)
def test_people_confirm_or_reject_a_bonus(labels: list[tuple[str, str]], expected: float) -> None:
    lines = [line(0, judged=judgement([finding(1), finding(2, "BONUS_VALID")], target()))]
    row = rows_of(lines)[0].row(0, named=True)
    people = conform([on_finding(row, 2, classification, who) for classification, who in labels], HUMAN_LABELS)
    assert value(frame_of(lines, people), "finding_precision_weighted") == pytest.approx(expected)


def test_judge_errors_leave_every_denominator_but_their_own_and_bound_the_rates() -> None:
    good = [line(0, judged=found()), line(1, judged=missed(said=False)), line(2, SAFE, judgement(said=False))]
    alone = values_of(frame_of(good))
    beside = values_of(frame := frame_of([*good, line(3), line(4, SAFE)]))
    failed = frame.filter(pl.col("judge_error").is_not_null())
    declared = {metric.name: replace(metric, slices=("all",)) for metric in metrics(DEFAULTS)}
    for name, ends in {"recall": (1 / 3, 2 / 3), "fnr": (1 / 3, 2 / 3), "fpr": (0, 1 / 2)}.items():
        assert open_bounds(frame, declared[name], (0, failed)) == pytest.approx(ends)
    assert beside.pop("judge_error_rate")["value"] == pytest.approx(2 / 5)
    assert alone.pop("judge_error_rate")["value"] == 0.0
    assert beside.pop("subject_error_rate")["n"] == alone.pop("subject_error_rate")["n"] + 2
    spent = {"cost_usd_total", "cost_usd_per_audit", "judge_cost_usd_per_audit", "input_tokens", "output_tokens"}
    assert {k: (r["value"], r["n"]) for k, r in beside.items() if k not in spent} == {
        k: (r["value"], r["n"]) for k, r in alone.items() if k not in spent
    }


def test_all_judgements_failed_leaves_nothing_to_say() -> None:
    values = values_of(frame_of([line(0), line(1, SAFE)]))
    defined = {name for name, row in values.items() if row["value"] is not None}
    assert defined == {"judge_error_rate", "subject_error_rate"}
    assert all(
        row["n"] == 0
        for name, row in values.items()
        if name not in defined and "_usd" not in name and "tok" not in name
    )


def test_a_found_target_without_a_type_match_counts_as_unmatched() -> None:
    """The share is of all targets found, whether the judge said how the type matches or not."""
    untold = judgement([finding()], target(type_match=None))
    metrics = values_of(frame_of([line(0, judged=found()), line(1, judged=untold)]))
    for name, share in (("exact_match_rate", 0.5), ("semantic_match_rate", 0.5), ("partial_match_rate", 0.0)):
        assert (metrics[name]["value"], metrics[name]["n"]) == (share, 2)


def test_lucky_guesses_are_right_for_the_wrong_reason() -> None:
    lines = [line(0, judged=found()), line(1, judged=missed()), line(2, judged=missed(said=False))]
    values = values_of(frame_of(lines))
    assert values["lucky_guess_rate"]["value"] == pytest.approx(1 / 2)
    assert values["lucky_guess_count"]["value"] == 1
    assert values["lucky_guess_indicator"]["value"] == pytest.approx(2 / 3 - 1 / 3)


def test_no_verdict_is_a_wrong_verdict() -> None:
    values = values_of(frame_of([line(0, judged=missed(said=None)), line(1, SAFE, judgement(said=None))]))
    assert [values[name]["value"] for name in ("tp", "tn", "fp", "fn")] == [0, 0, 1, 1]


def test_reasoning_counts_zero_where_no_target_was_found_and_is_undefined_without_targets() -> None:
    assert value(frame_of([line(0, judged=missed(finding(1, "BONUS_VALID")))]), "true_understanding_score") == 0.0
    assert value(frame_of([line(0, SAFE, judgement(said=False))]), "true_understanding_score") is None


def test_scores_count_only_where_the_target_was_found() -> None:
    given = {"score": 0.8}
    judged = judgement([], target(found=False, root_cause_identification=given))
    row = values_of(frame_of([line(0, judged=judged), line(1, judged=found(0.5))]), "mean_rcir")["mean_rcir"]
    assert (row["value"], row["n"]) == (0.5, 1)


def test_invalid_findings_cost_by_class() -> None:
    classes = CLASSIFICATIONS[3:]
    findings = [finding(number, name) for number, name in enumerate(classes)]
    values = values_of(frame_of([line(0, SAFE, judgement(findings)), line(1, SAFE, judgement(said=False))]))
    assert values["invalid_cost"]["value"] == pytest.approx((1 + 1 + 0.5 + 0.5 + 1 + 0.25) / 2)
    assert values["over_flagging_score"]["value"] == 3.0
    shares = [values[f"{name.lower()}_share"]["value"] for name in CLASSIFICATIONS]
    assert sum(shares) == pytest.approx(1.0)


def test_an_undefined_component_leaves_sui_and_its_weight_is_shared_out() -> None:
    """Only safe contracts, none flagged, nothing found: of the five, calibration alone is defined."""
    frame = frame_of([line(0, SAFE, judgement(said=False, confidence=0.9))])
    assert value(frame, "sui") == pytest.approx(0.9)
    assert value(frame, "target_found_count") == 0


def test_a_bad_component_cannot_be_made_up_for_in_the_geometric_index() -> None:
    """Everything perfect but precision, which is 1/4, and 0 where the one finding is wrong."""
    values = values_of(frame_of([line(0, judged=found(extra=3, confidence=1.0))]))
    assert values["sui"]["value"] == pytest.approx(1 - 0.15 * 0.75)
    assert values["sui_geometric"]["value"] == pytest.approx(0.25**0.15)
    assert value(frame_of([line(0, judged=missed(finding(1, "HALLUCINATED")))]), "sui_geometric") == 0.0


def test_a_component_without_weight_is_none_of_the_geometric_index() -> None:
    weights = {**dict.fromkeys(COMPONENTS, 0.0), "f2": 1.0}
    frame = frame_of([line(0, judged=missed(finding(1, "HALLUCINATED")))])
    assert value(frame, "sui_geometric", options={**DEFAULTS, "sui_weights": weights}) == pytest.approx(1.0)


def test_the_severity_weighted_index_counts_a_critical_target_more() -> None:
    critical, low = (TRUTH.model_copy(update={"severity": severity}) for severity in ("critical", "low"))
    values = values_of(frame_of([line(0, critical, found()), line(1, low, missed(finding(1, "BONUS_VALID")))]))
    assert values["sui_severity_weighted"]["value"] - values["sui"]["value"] == pytest.approx(0.25 * (3 / 3.5 - 1 / 2))


def test_the_index_with_partial_credit_credits_half_of_a_target_and_findings_by_worth() -> None:
    values = values_of(frame_of([line(0, judged=found()), line(1, judged=missed(finding(1, "PARTIAL_MATCH")))]))
    gained = values["sui_partial_credit"]["value"] - values["sui"]["value"]
    assert gained == pytest.approx(0.25 * (0.75 - 0.5) + 0.15 * (0.75 - 1.0))


def test_latency_and_cost_are_of_an_audit_that_was_given() -> None:
    frame = frame_of([line(n, judged=found()) for n in range(3)])
    spent = {"latency_ms": [100.0, 300.0, None], "cost_usd": [0.5, 1.5, None], "judge_cost_usd": [1.0, 3.0, None]}
    frame = frame.with_columns(pl.Series(name, values) for name, values in spent.items())
    refused = pl.col("sample_id") == "s2"
    frame = frame.with_columns(subject_error=pl.when(refused).then(pl.lit("content_policy")))
    values = values_of(frame)
    assert [values[f"latency_ms_{name}"]["value"] for name in ("mean", "p50", "max")] == [200.0, 200.0, 300.0]
    assert (values["cost_usd_per_audit"]["value"], values["judge_cost_usd_per_audit"]["value"]) == (1.0, 2.0)
    unpriced = frame.with_columns(subject_error=pl.lit(None, pl.String))
    assert value(unpriced, "cost_usd_per_audit") is None


@pytest.mark.parametrize(("unstated", "expected"), [(0.5, 0.95), ("left_out", 1.0), (0.0, 0.9)])
def test_calibration_in_sui_where_no_confidence_was_stated(unstated: Any, expected: float) -> None:
    frame = frame_of([line(0, judged=found(confidence=None))])
    options = {**DEFAULTS, "sui_calibration_unstated": unstated}
    assert value(frame, "sui", options=options) == pytest.approx(expected)
    assert any("stated no confidence" in each for each in warnings(frame))
