"""The metrics of solidity_audit, declared as data: names, formulas, tiers and slices.

A row without a judgement (judge error, undecided panel) has nulls in the columns about it, and so leaves every
denominator but those of `judge_error_rate` and `panel_undecided_rate`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from evalake.metrics.calibration import CalibrationError, Statistic, ece, ece_adaptive, ece_debiased, mce
from evalake.metrics.composite import Composite, Parts, mean_defined
from evalake.metrics.compute import Metric
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Count, Maximum, Mean, Quantile, Rate, Ratio, Total
from evalake.metrics.intervals import Array
from evalake.metrics.variance import population_std
from evalake.suites.solidity_audit import truth

SLICES = ("all", "prompt_type", "difficulty_tier", "vulnerability_type", "severity")
OF_CODE = ("transformation", "code_act")
FURTHER: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("confidence_bin", *OF_CODE),
    "mean_confidence": ("confidence_bin",),
    "target_detection_rate": OF_CODE,
    "contamination_rate": ("transformation",),
}
"""Further slices, by metric."""


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
_target_matches, _partial_matches, _bonus = (pl.col(truth.count_column(name)) for name in truth.VALID)
_no_audit = pl.col("subject_error").is_not_null()
_audit = pl.col("prompt_type") != truth.KNOWLEDGE
_severity_weight = pl.col("severity").replace_strict(
    dict(truth.SEVERITY_WEIGHTS), default=None, return_dtype=pl.Float64
)
_invalid_cost = pl.sum_horizontal(
    *[pl.col(truth.count_column(name)) * cost for name, cost in truth.INVALID_COSTS.items()]
)
_bonus_credit = 0.5 * (_bonus - pl.col("bonus_confirmed") - pl.col("bonus_rejected")) + pl.col("bonus_confirmed")
_severe = _target & _severity_weight.is_not_null()
_BRIER_PARTS: Mapping[Statistic, str] = {
    "reliability": "Of the Brier score, what stems from miscalibration: the bins' mean squared gap.",
    "resolution": "Of the Brier score, what telling right from wrong saves: how far the bins' accuracies differ.",
    "uncertainty": "Of the Brier score, what the overall accuracy leaves open: accuracy x (1 - accuracy).",
}


def _score(name: str) -> pl.Expr:
    return pl.when(_found_target).then(pl.col(name)).cast(pl.Float64)


_MATCHED = {f"mean_{name}": Mean(_score(name), low=0, high=1) for name in truth.SCORES}
_DETECTED = Rate(_found, _vulnerable)
_open = pl.col("undecided_findings")  # of a panel
_VALID, _WRONG = Rate(_valid, _total, undecided=_open), Rate(_invalid, _total, undecided=_open)
_WORTH = Ratio(_target_matches + 0.5 * _partial_matches + _bonus_credit, _total, undecided=_open)
_CREDITED = Mean(pl.col("target_credit"), low=0, high=1)
_WEIGHED = pl.when(_severe).then(_severity_weight)
_SEVERE_DETECTED = Ratio(pl.when(_found).then(_WEIGHED), _WEIGHED, rows=_severe)


def _f_measure(recall_weight: int) -> Ratio:
    """Build the ratio (1 + w) tp / ((1 + w) tp + fp + w fn), where recall weighs w times as much as precision."""
    tp, fp, fn = (condition.cast(pl.Int64) for condition in (_tp, _fp, _fn))
    hits = (1 + recall_weight) * tp
    return Ratio(hits, hits + fp + recall_weight * fn, rows=_judged, heaviest=1 + recall_weight)


def _reasoning(parts: Parts) -> Array:
    """Average the scores' means; 0 where there were targets and none was found."""
    means = mean_defined(np.stack([parts[name] for name in _MATCHED], axis=-1))
    return np.where(parts["found"] == 0, 0.0, means)


def _true_understanding(parts: Parts) -> Array:
    return parts["found"] * _reasoning(parts) * (1 - parts["invalid"])


def _true_understanding_geometric(parts: Parts) -> Array:
    return np.cbrt(_true_understanding(parts))


def _lucky_guess_indicator(parts: Parts) -> Array:
    return parts["accuracy"] - parts["found"]


_WeightedMean = Callable[[Array, Array], Array]
"""The weighted mean of components along the last axis; an undefined component has the weight 0."""


def _arithmetic(values: Array, weights: Array) -> Array:
    return np.asarray((values * weights).sum(axis=-1) / weights.sum(axis=-1))


def _geometric(values: Array, weights: Array) -> Array:
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.where(weights > 0, values, 1.0))
    return np.exp(_arithmetic(logarithms, weights))


def sui_of(
    parts: Parts, weights: tuple[float, ...], calibration_unstated: float | None, mean: _WeightedMean = _arithmetic
) -> Array:
    """Compute the weighted mean of SUI's defined components; `target`, if given, stands in for the targets found."""
    calibration = 1 - parts["ece"]
    if calibration_unstated is not None:
        calibration = np.where(np.isnan(calibration), calibration_unstated, calibration)
    target = parts.get("target", parts["found"])
    values = np.stack([parts["f2"], target, parts["valid"], _reasoning(parts), calibration], axis=-1)
    defined = np.isfinite(values)
    return mean(np.where(defined, values, 0.0), np.where(defined, np.array(weights), 0.0))


_UNDERSTANDING: Mapping[str, Estimator] = {"found": _DETECTED, "invalid": _WRONG, **_MATCHED}
_INDEX: Mapping[str, Estimator] = {
    "f2": _f_measure(4),
    "found": _DETECTED,
    "valid": _VALID,
    **_MATCHED,
    "ece": ece(_confidence, _correct),
}


def sui(
    weights: truth.Weights,
    unstated: float | None,
    mean: _WeightedMean = _arithmetic,
    instead: Mapping[str, Estimator] | None = None,
) -> Composite:
    """Build the security understanding index over judged rows.

    Args:
        weights: The weights of its components, by name.
        unstated: The value of calibration where no confidence was stated; None leaves it out.
        mean: How the components are averaged.
        instead: Estimators in place of components, by name; `target` in place of the targets found.
    """
    by_component = tuple(weights[name] for name in truth.COMPONENTS)
    function = partial(sui_of, weights=by_component, calibration_unstated=unstated, mean=mean)
    return Composite(function, {**_INDEX, **(instead or {})}, n=_judged)


def metrics(options: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Declare every metric of one model and judge. Raises ConfigurationError where an option is not valid."""
    truth.sui_weight_sets(options)  # used only after the calls, but an invalid value is refused before them
    truth.aggregation(options)
    truth.in_panel(options, pl.col("judge"))
    weights, unstated = truth.sui_weights(options), truth.calibration_unstated(options)
    first, *alternatives = _indices(weights, unstated)
    declared = (*_detection(), *_target_metrics(), *_findings(), *_quality(truth.std_ddof(options)), *_calibration())
    composites = (first, *_composites(), *alternatives)
    parameters: dict[str, Mapping[str, Any]] = {
        name: {"weights": weights, "calibration_unstated": unstated} for name, *_ in (first, *alternatives)
    }
    if ddof := truth.std_ddof(options):
        parameters |= {f"std_{name}": {"ddof": ddof} for name in truth.SCORES}
    return tuple(
        Metric(name, estimator, tier, (*SLICES, *FURTHER.get(name, ())), about, parameters=parameters.get(name, {}))
        for name, estimator, tier, about in (*declared, *composites, *_beyond(), *_shares(), *_spent())
    )


_Declared = Iterator[tuple[str, Estimator, int | None, str]]


def _indices(weights: truth.Weights, unstated: float | None) -> _Declared:
    """Yield SUI and its alternatives."""
    about = "Security understanding index: a weighted mean of detection, target, precision, reasoning."
    yield "sui", sui(weights, unstated), 7, about
    about = "As sui, but the weighted geometric mean: what is good makes up less for what is bad."
    yield "sui_geometric", sui(weights, unstated, _geometric), None, about
    severe = sui(weights, unstated, instead={"target": _SEVERE_DETECTED})
    yield "sui_severity_weighted", severe, None, "As sui, with the targets found weighed by severity."
    credited = sui(weights, unstated, instead={"target": _CREDITED, "valid": _WORTH})
    about = "As sui, with target_credit for targets found, and findings by worth for precision."
    yield "sui_partial_credit", credited, None, about


def _detection() -> _Declared:
    for name, condition in (("tp", _tp), ("tn", _tn), ("fp", _fp), ("fn", _fn)):
        yield name, Count(condition.fill_null(False), _judged), 1, ""
    yield "accuracy", Rate(_correct), 1, "Right verdicts; no verdict is a wrong one."
    yield "precision", Rate(_tp, _tp | _fp), 1, "Vulnerable contracts of those called vulnerable."
    yield "recall", Rate(_tp, _vulnerable), 1, "Vulnerable contracts called vulnerable."
    yield "f1", _f_measure(1), 1, ""
    yield "f2", _f_measure(4), 1, "F-measure that weighs recall twice as much as precision."
    yield "fpr", Rate(_fp, ~_vulnerable), 1, "Safe contracts not called safe."
    yield "fnr", Rate(_fn, _vulnerable), 1, "Vulnerable contracts not called vulnerable."


def _target_metrics() -> _Declared:
    lucky = pl.col("lucky_guess")
    extra = _valid > _found.fill_null(False).cast(pl.Int64)
    yield "target_detection_rate", _DETECTED, 2, "Known vulnerabilities that were found."
    yield "lucky_guess_rate", Rate(lucky, _tp), 2, "True positives without the target."
    yield "bonus_discovery_rate", Rate(_bonus > 0), 2, "Audits with a finding of another real vulnerability."
    yield "extra_valid_rate", Rate(extra), 2, "Audits with more valid findings than the target accounts for."
    yield "target_found_count", Count(_found_target.fill_null(False), _judged | _target), 2, ""
    yield "lucky_guess_count", Count(lucky.fill_null(False), _judged), 2, ""


def _findings() -> _Declared:
    hallucinated = pl.col("hallucinated_findings")
    yield "finding_precision", _VALID, 3, "Valid findings of all findings."
    yield "invalid_rate", _WRONG, 3, "Invalid findings of all findings."
    yield (
        "hallucination_rate",
        Rate(hallucinated, _total, undecided=_open),
        3,
        "Findings about what is not there, of all findings.",
    )
    yield "over_flagging_score", Mean(_invalid, low=0), 3, "Invalid findings an audit."
    yield "avg_findings_per_sample", Mean(_total, low=0), 3, ""
    for name in ("total", "valid", "invalid", "hallucinated"):
        yield f"{name}_findings", Total(pl.col(f"{name}_findings"), _counted), 3, ""


def _of_sample(parts: Parts) -> Array:
    """Turn the population's deviation into the sample's, which divides by one less; unknown for one score."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(parts["n"] > 1, parts["std"] * np.sqrt(parts["n"] / (parts["n"] - 1)), np.nan)


def _deviation(score: pl.Expr, ddof: int) -> Estimator:
    of_population = population_std(score, low=0, high=1)
    if not ddof:
        return of_population
    scored = score.is_not_null()
    return Composite(_of_sample, {"std": of_population, "n": Count(scored, scored)}, n=scored)


def _quality(ddof: int) -> _Declared:
    about = "Of the sample (ddof 1)." if ddof else "Of the population (ddof 0)."
    for name in truth.SCORES:
        yield f"mean_{name}", _MATCHED[f"mean_{name}"], 4, ""
        yield f"std_{name}", _deviation(_score(name), ddof), 4, about
    match, of_found = pl.col("type_match").fill_null(""), _found_target & ~_panel  # an unstated match counts as none
    yield "exact_match_rate", Rate(match == "exact", of_found), 5, "Found targets of the very type."
    yield "semantic_match_rate", Rate(match.is_in(["exact", "semantic"]), of_found), 5, "Or of one that means it."
    yield "partial_match_rate", Rate(match == "partial", of_found), 5, ""


def _calibration() -> _Declared:
    yield "ece", ece(_confidence, _correct), 6, "Expected calibration error in ten equal bins."
    yield "mce", mce(_confidence, _correct), 6, "The largest of the bins' errors."
    yield "ece_debiased", ece_debiased(_confidence, _correct), 6, "Without what noise alone adds to it."
    yield "ece_adaptive", ece_adaptive(_confidence, _correct), 6, "In bins of equal mass that split no confidence."
    stated = Mean(pl.when(_confident).then(_confidence), low=0, high=1)
    yield "mean_confidence", stated, 6, "Of the audits that state one."
    squared = (_confidence - _correct.cast(pl.Float64)) ** 2
    yield "brier_score", Mean(squared, low=0, high=1), 6, "Mean squared distance of confidence and correctness."
    for name, about in _BRIER_PARTS.items():
        yield f"brier_{name}", CalibrationError(_confidence, _correct, name), 6, about
    yield "overconfidence_rate", Rate(~_correct, _confidence > 0.8), 6, "Wrong where confidence is above 0.8."
    yield "underconfidence_rate", Rate(_correct, _confidence < 0.5), 6, "Right where confidence is below 0.5."


def _composites() -> _Declared:
    understanding = Composite(_true_understanding, _UNDERSTANDING, n=_counted)
    yield "true_understanding_score", understanding, 7, "Targets found x reasoning x share of findings not invalid."
    beyond = Composite(_lucky_guess_indicator, {"accuracy": Rate(_correct), "found": _DETECTED}, n=_judged, low=-1)
    yield "lucky_guess_indicator", beyond, 7, "Accuracy beyond targets."
    geometric = Composite(_true_understanding_geometric, _UNDERSTANDING, n=_counted)
    yield "true_understanding_geometric", geometric, None, "Geometric mean of the three factors."


def _beyond() -> _Declared:
    functions, lines = pl.col("location_function_hit"), pl.col("location_line_hit")
    yield "target_credit", _CREDITED, None, "1 for the target, 0.5 for a part of it."
    yield "finding_precision_weighted", _WORTH, None, "Findings by worth, of all findings."
    yield "target_detection_rate_severity_weighted", _SEVERE_DETECTED, None, "Targets found, weighed by severity."
    cost = Mean(pl.when(_counted).then(_invalid_cost), low=0)
    yield "invalid_cost", cost, None, "What invalid findings cost an audit."
    yield "location_function_rate", Rate(functions), None, "Found targets placed in a vulnerable function."
    yield "location_line_hit_rate", Rate(lines), None, "Found targets placed within 3 lines."
    overlap = Mean(pl.col("location_line_iou"), low=0, high=1)
    yield "location_line_iou", overlap, None, "Overlap of claimed and true lines."
    yield "contamination_rate", Rate(pl.col("contaminated")), None, "Contracts whose incident the model names."
    yield "recognition_rate", Rate(pl.col("recognised")), None, "Contracts that the model says it knows."
    yield (
        "subject_error_rate",
        Rate(_no_audit, _audit),
        None,
        "Audits that the model did not give: refused, too late, empty.",
    )
    failed = Rate(pl.col("judge_error").is_not_null(), ~_panel & ~_no_audit & _audit)
    yield "judge_error_rate", failed, None, "Judgements that failed."
    merged = _total + pl.col("undecided_findings")
    open_findings = Rate(pl.col("undecided_findings"), merged)
    yield "findings_undecided_rate", open_findings, None, "Findings of a panel that no majority classes."
    yield "panel_undecided_rate", Rate(pl.col("panel_undecided")), None, "Audits on which the panel did not decide."


def _shares() -> _Declared:
    for name in truth.CLASSIFICATIONS:
        share, words = Rate(pl.col(truth.count_column(name)), _total, undecided=_open), name.lower().replace("_", " ")
        yield f"{name.lower()}_share", share, None, f"{words} findings, of all findings."


def _spent() -> _Declared:
    given, latency = ~_panel & ~_no_audit, pl.col("latency_ms")
    audit, judgement = pl.col("cost_usd"), pl.col("judge_cost_usd")
    yield "latency_ms_mean", Mean(latency, low=0), None, "Of the audits, not of their judgements."
    for percentile in (50, 90, 99):
        yield f"latency_ms_p{percentile}", Quantile(latency, percentile / 100), None, ""
    yield "latency_ms_max", Maximum(latency), None, ""
    for name, cost, of in (("cost_usd", audit, "an audit"), ("judge_cost_usd", judgement, "its judgement")):
        mean = Mean(cost, given, low=0, complete=True)
        yield f"{name}_per_audit", mean, None, f"What {of} costs; null if any price is unknown."
    whole = pl.when(_no_audit).then(audit.fill_null(0.0)).otherwise(audit + judgement)  # no answer has no price
    yield "cost_usd_total", Total(whole, ~_panel), None, "Audits and judgements; null if any price is unknown."
    for name in ("input_tokens", "output_tokens"):
        yield name, Total(pl.col(name), given), None, "Of the audits; null if any is unknown."
