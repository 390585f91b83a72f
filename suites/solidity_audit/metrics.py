"""The metrics of solidity_audit, declared as data: names, formulas, tiers and slices.

A row without a judgement (judge error, undecided panel) has nulls in the columns about it, and so leaves every
denominator but those of `judge_error_rate` and `panel_undecided_rate`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from metrics.calibration import calibration_sums, ece, ece_adaptive, equal_width_bin, expected_calibration_error, mce
from metrics.composite import Composite, Sums, mean_defined, population_std, ratio
from metrics.definition import Estimator, Metric
from metrics.estimators import Count, Mean, Rate, Total
from metrics.intervals import Array
from suites.solidity_audit.options import COMPONENTS, Weights, calibration_unstated, sui_weight_sets, sui_weights
from suites.solidity_audit.taxonomy import CLASSIFICATIONS, INVALID_COSTS, SEVERITY_WEIGHTS, count_column

SLICES = ("all", "prompt_type", "difficulty_tier", "vulnerability_type", "severity")
FURTHER_SLICES = {"accuracy": ("confidence_bin",), "mean_confidence": ("confidence_bin",)}
SCORES = ("rcir", "ava", "fsv")

_vulnerable = pl.col("is_vulnerable")
_correct = pl.col("detection_correct")
_found = pl.col("target_found")
_judged = _correct.is_not_null()
_confidence = pl.col("confidence")
_confident = _confidence.is_not_null() & _judged
_tp, _fn = _vulnerable & _correct, _vulnerable & ~_correct
_tn, _fp = ~_vulnerable & _correct, ~_vulnerable & ~_correct
_target = _vulnerable & _found.is_not_null()
_found_target = _vulnerable & _found
_total, _valid, _invalid = (pl.col(f"{name}_findings") for name in ("total", "valid", "invalid"))
_counted = _total.is_not_null()
_panel = pl.col("panel_judges").is_not_null()
_target_matches, _partial_matches, _bonus = (
    pl.col(f"{name}_findings") for name in ("target_match", "partial_match", "bonus_valid")
)
_severity_weight = pl.col("severity").replace_strict(dict(SEVERITY_WEIGHTS), default=None, return_dtype=pl.Float64)
_invalid_cost = pl.sum_horizontal(*[pl.col(count_column(name)) * cost for name, cost in INVALID_COSTS.items()])
_bonus_credit = 0.5 * (_bonus - pl.col("bonus_confirmed") - pl.col("bonus_rejected")) + pl.col("bonus_confirmed")
_severe = _target & _severity_weight.is_not_null()


def _score(name: str) -> pl.Expr:
    return pl.when(_found_target).then(pl.col(name)).cast(pl.Float64)


def _f1(s: Sums) -> Array:
    return 2 * s["tp"] / (2 * s["tp"] + s["fp"] + s["fn"])


def _f2(s: Sums) -> Array:
    return 5 * s["tp"] / (5 * s["tp"] + s["fp"] + 4 * s["fn"])


def _reasoning(s: Sums) -> Array:
    """Mean of the scores' means; 0 where there were targets and none was found."""
    means = mean_defined(np.stack([s[name] / s[f"{name} n"] for name in SCORES], axis=-1))
    return np.where((s["found"] == 0) & (s["targets"] > 0), 0.0, means)


def _understanding_factors(s: Sums) -> tuple[Array, Array, Array]:
    return s["found"] / s["targets"], _reasoning(s), 1 - s["invalid"] / s["total"]


def _true_understanding(s: Sums) -> Array:
    found, reasoning, precise = _understanding_factors(s)
    return found * reasoning * precise


def _true_understanding_geometric(s: Sums) -> Array:
    return np.cbrt(_true_understanding(s))


def _lucky_guess_indicator(s: Sums) -> Array:
    return s["correct"] / s["judged"] - s["found"] / s["targets"]


def sui_of(s: Sums, weights: tuple[float, ...], calibration_unstated: float | None) -> Array:
    """The weighted mean of SUI's components, from sums by confidence bin; an undefined component leaves it."""
    calibration = 1 - expected_calibration_error(s)
    if calibration_unstated is not None:
        calibration = np.where(s["confident"].sum(axis=-1) > 0, calibration, calibration_unstated)
    s = {name: values.sum(axis=-1) for name, values in s.items()}
    parts = [_f2(s), s["found"] / s["targets"], s["valid"] / s["total"], _reasoning(s), calibration]
    values = np.stack(parts, axis=-1)
    defined = np.isfinite(values)
    weighing = np.where(defined, np.array(weights), 0.0)
    index = (np.where(defined, values, 0.0) * weighing).sum(axis=-1) / weighing.sum(axis=-1)
    return np.where(s["judged"] > 0, index, np.nan)


_CONFUSION = {"tp": _tp, "fp": _fp, "fn": _fn}
_UNDERSTANDING: Mapping[str, pl.Expr] = {
    "found": _found_target,
    "targets": _target,
    "invalid": _invalid,
    "total": _total,
} | {key: value for n in SCORES for key, value in ((n, _score(n)), (f"{n} n", _score(n).is_not_null()))}
_CALIBRATION = calibration_sums(_confidence, _correct)
_INDEX = _CONFUSION | {**_UNDERSTANDING} | {"valid": _valid, "judged": _judged} | _CALIBRATION


def sui(weights: Weights, unstated: float | None) -> Composite:
    """The security understanding index with these weights, over judged rows."""
    function = partial(sui_of, weights=tuple(weights[name] for name in COMPONENTS), calibration_unstated=unstated)
    return Composite(function, _INDEX, n=_judged, by=equal_width_bin(_confidence), apart=tuple(_CALIBRATION))


def metrics(options: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Every metric of one model and judge. Raises ConfigurationError where an option of the suite cannot be."""
    sui_weight_sets(options)  # of use to `further_metrics`, after the calls; what cannot be is refused before them
    index = sui(sui_weights(options), calibration_unstated(options))
    declared = (*_detection(), *_target_metrics(), *_findings(), *_quality(), *_calibration(), *_composites(index))
    return tuple(
        Metric(name, estimator, tier, (*SLICES, *FURTHER_SLICES.get(name, ())), description)
        for name, estimator, tier, description in (*declared, *_beyond(), *_shares(), *_spent())
    )


_Declared = Iterator[tuple[str, Estimator, int | None, str]]


def _detection() -> _Declared:
    for name, condition in (("tp", _tp), ("tn", _tn), ("fp", _fp), ("fn", _fn)):
        yield name, Count(condition.fill_null(False), _judged), 1, ""
    yield "accuracy", Rate(_correct), 1, "Right verdicts; no verdict is a wrong one."
    yield "precision", Rate(_tp, _tp | _fp), 1, "Vulnerable contracts of those called vulnerable."
    yield "recall", Rate(_tp, _vulnerable & _judged), 1, "Vulnerable contracts called vulnerable."
    yield "f1", Composite(_f1, _CONFUSION, n=_judged), 1, ""
    yield "f2", Composite(_f2, _CONFUSION, n=_judged), 1, "F-measure that weighs recall twice as much as precision."
    yield "fpr", Rate(_fp, ~_vulnerable & _judged), 1, "Safe contracts not called safe."
    yield "fnr", Rate(_fn, _vulnerable & _judged), 1, "Vulnerable contracts not called vulnerable."


def _target_metrics() -> _Declared:
    lucky = pl.col("lucky_guess")
    extra = _valid > _found.fill_null(False).cast(pl.Int64)
    yield "target_detection_rate", Rate(_found, _vulnerable), 2, "Known vulnerabilities that were found."
    yield "lucky_guess_rate", Rate(lucky, _tp), 2, "True positives without the target."
    yield "bonus_discovery_rate", Rate(_bonus > 0), 2, "Audits with a finding of another real vulnerability."
    yield "extra_valid_rate", Rate(extra), 2, "Audits with more valid findings than the target accounts for."
    yield "target_found_count", Count(_found_target.fill_null(False), _judged | _target), 2, ""
    yield "lucky_guess_count", Count(lucky.fill_null(False), _judged), 2, ""


def _findings() -> _Declared:
    hallucinated = pl.col("hallucinated_findings")
    yield "finding_precision", Rate(_valid, _total), 3, "Valid findings of all findings."
    yield "invalid_rate", Rate(_invalid, _total), 3, "Invalid findings of all findings."
    yield "hallucination_rate", Rate(hallucinated, _total), 3, "Findings about what is not there, of all findings."
    yield "over_flagging_score", Mean(_invalid), 3, "Invalid findings an audit."
    yield "avg_findings_per_sample", Mean(_total), 3, ""
    for name in ("total", "valid", "invalid", "hallucinated"):
        yield f"{name}_findings", Total(pl.col(f"{name}_findings"), _counted), 3, ""


def _quality() -> _Declared:
    for name in SCORES:
        yield f"mean_{name}", Mean(_score(name)), 4, ""
        yield f"std_{name}", population_std(_score(name)), 4, "Of the population (ddof 0)."
    match, found = pl.col("type_match").fill_null(""), _found_target & ~_panel  # a match that was not told is none
    yield "exact_match_rate", Rate(match == "exact", found), 5, "Found targets of the very type."
    yield "semantic_match_rate", Rate(match.is_in(["exact", "semantic"]), found), 5, "Or of one that means it."
    yield "partial_match_rate", Rate(match == "partial", found), 5, ""


def _calibration() -> _Declared:
    yield "ece", ece(_confidence, _correct), 6, "Expected calibration error in ten equal bins."
    yield "mce", mce(_confidence, _correct), 6, "The largest of the bins' errors."
    yield "ece_adaptive", ece_adaptive(_confidence, _correct), 6, "In bins of equal mass that split no confidence."
    yield "mean_confidence", Mean(pl.when(_confident).then(_confidence)), 6, "Of the audits that state one."
    squared = (_confidence - _correct.cast(pl.Float64)) ** 2
    yield "brier_score", Mean(squared), 6, "Mean squared distance of confidence and correctness."
    yield "overconfidence_rate", Rate(~_correct, _confidence > 0.8), 6, "Wrong where confidence is above 0.8."
    yield "underconfidence_rate", Rate(_correct, _confidence < 0.5), 6, "Right where confidence is below 0.5."


def _composites(index: Composite) -> _Declared:
    yield "sui", index, 7, "Security understanding index: a weighted mean of detection, target, precision, reasoning."
    understanding = Composite(_true_understanding, _UNDERSTANDING, n=_counted)
    yield "true_understanding_score", understanding, 7, "Targets found x reasoning x share of findings not invalid."
    sums = {"correct": _correct, "judged": _judged, "found": _found_target, "targets": _target}
    yield "lucky_guess_indicator", Composite(_lucky_guess_indicator, sums, n=_judged), 7, "Accuracy beyond targets."
    geometric = Composite(_true_understanding_geometric, _UNDERSTANDING, n=_counted)
    yield "true_understanding_geometric", geometric, None, "Geometric mean of the three factors."


def _beyond() -> _Declared:
    functions, lines = pl.col("location_function_hit"), pl.col("location_line_hit")
    credited = _target_matches + 0.5 * _partial_matches + _bonus_credit
    weighted = pl.when(_severe).then(_severity_weight)
    severity = ratio(pl.when(_found).then(weighted), weighted, n=_severe)
    yield "target_credit", Mean(pl.col("target_credit")), None, "1 for the target, 0.5 for a part of it."
    yield "finding_precision_weighted", ratio(credited, _total), None, "Findings by worth, of all findings."
    yield "target_detection_rate_severity_weighted", severity, None, "Targets found, weighed by severity."
    yield "invalid_cost", Mean(pl.when(_counted).then(_invalid_cost)), None, "What invalid findings cost an audit."
    yield "location_function_rate", Rate(functions), None, "Found targets placed in a vulnerable function."
    yield "location_line_hit_rate", Rate(lines), None, "Found targets placed within 3 lines."
    yield "location_line_iou", Mean(pl.col("location_line_iou")), None, "Overlap of claimed and true lines."
    yield "judge_error_rate", Rate(pl.col("judge_error").is_not_null(), ~_panel), None, "Judgements that failed."
    yield "panel_undecided_rate", Rate(pl.col("panel_undecided")), None, "Audits on which the panel did not decide."


def _shares() -> _Declared:
    for name in CLASSIFICATIONS:
        words = name.lower().replace("_", " ")
        yield (
            f"{name.lower()}_share",
            Rate(pl.col(count_column(name)), _total),
            None,
            f"{words} findings, of all findings.",
        )


def _spent() -> _Declared:
    cost = pl.col("cost_usd") + pl.col("judge_cost_usd")
    yield "cost_usd_total", Total(cost, ~_panel), None, "Audits and judgements; null if any price is unknown."
    yield "input_tokens", Total(pl.col("input_tokens"), ~_panel), None, "Of the audits; null if any is unknown."
    yield "output_tokens", Total(pl.col("output_tokens"), ~_panel), None, "Of the audits; null if any is unknown."
