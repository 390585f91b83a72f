"""The quantities whose intervals are simulated: one of every kind that the engine has."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.coverage.populations import CONFIDENCES, COUNTED, HEAVY, LEVELS, Population
from evalake.metrics.agreement import cohen_kappa, fleiss_kappa, gwet_ac1, icc_2_1, krippendorff_alpha, pearson, votes
from evalake.metrics.calibration import CalibrationError, ece, ece_adaptive, ece_debiased, mce
from evalake.metrics.composite import Composite, MacroAverage, Parts
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Mean, Quantile, Rate, Ratio
from evalake.metrics.intervals import Array
from evalake.metrics.variance import pooled_within, population_std

_right, _positive = pl.col("right"), pl.col("positive")
_score, _confidence = pl.col("score"), pl.col("confidence")
_honest = pl.col("honest")
_CALIBRATED = "70 to 87 %"
_HEAVY = "30 to 87 %, not marked"
_raters = [pl.col(name) for name in ("right", "second", "third")]
_votes = votes(_raters, (True, False))
_detected, _accepted = Rate(_right, _positive), Rate(_right, ~_positive)
_valid = Rate(pl.col("valid"), pl.col("findings"))
_reasoning = Mean(pl.when(_positive & _right).then(_score), low=0, high=1)


def _f_measure(recall_weight: int) -> Ratio:
    hits, missed, false = ((c).cast(pl.Int64) for c in (_positive & _right, _positive & ~_right, ~_positive & ~_right))
    weighed = (1 + recall_weight) * hits
    return Ratio(weighed, weighed + false + recall_weight * missed, rows=pl.lit(True), heaviest=1 + recall_weight)


def _balanced(parts: Parts) -> Array:
    return (parts["detection"] + parts["acceptance"]) / 2


def _index(parts: Parts) -> Array:
    reasoning = np.where(parts["found"] == 0, 0.0, parts["reasoning"])
    table = np.stack([parts["f2"], parts["found"], parts["valid"], reasoning, 1 - parts["ece"]], axis=-1)
    weights = np.where(np.isnan(table), 0.0, np.array([0.25, 0.25, 0.15, 0.25, 0.10]))
    return np.asarray((np.nan_to_num(table) * weights).sum(axis=-1) / weights.sum(axis=-1))


def _understanding(parts: Parts) -> Array:
    return parts["found"] * np.where(parts["found"] == 0, 0.0, parts["reasoning"]) * parts["valid"]


# True values of a population, where they follow from it.


def _f_value(of: Population, recall_weight: int) -> float:
    hits = (1 + recall_weight) * of.share * of.rate
    return hits / (hits + (1 - of.rate) * (1 - of.share + recall_weight * of.share))


def _mean_where_right(of: Population) -> float:
    return of.rate + of.structure.alike * (1 - of.rate)


def _deviation_of_scores(of: Population) -> float:
    alike = of.structure.alike
    return float(np.sqrt(of.rate * (1 - of.rate) * ((1 - alike) / LEVELS + alike)))


def _ece_value(of: Population) -> float:
    """Compute the mean gap; the last two confidences share a bin."""
    confidences = np.array([*CONFIDENCES[:-2], *[np.mean(CONFIDENCES[-2:])] * 2])
    return float(np.abs(confidences - of.rate).mean())


def _sui_value(of: Population) -> float:
    reasoning = _mean_where_right(of)
    return 0.25 * _f_value(of, 4) + 0.4 * of.rate + 0.25 * reasoning + 0.1 * (1 - _ece_value(of))


Truth = Callable[[Population], float]


@dataclass(frozen=True)
class Quantity:
    """One kind of interval; `of_rate` and `of_share` tell whether the quantity depends on either.

    `truth` is its value in a population, where that is known; else a large sample stands for the population. `before`
    is what was simulated before it was mended.
    """

    name: str
    estimator: Estimator
    of_rate: bool = True
    of_share: bool = False
    repeats_only: bool = False
    truth: float | Truth | None = None
    before: str = ""

    def true(self, of: Population) -> float | None:
        """Compute its value in a population; None where only a sample tells it."""
        return self.truth(of) if callable(self.truth) else self.truth


QUANTITIES = (
    Quantity("rate", Rate(_right), truth=lambda of: of.rate),
    Quantity("rate of what rows count", _valid, truth=lambda of: of.rate),
    Quantity("mean of scores", Mean(_score, low=0, high=1), truth=lambda of: of.rate),
    Quantity(
        "weighted ratio",
        Ratio(pl.when(_right).then(pl.col("worth")).otherwise(0.0), pl.col("worth")),
        truth=lambda of: of.rate,
    ),
    Quantity("F1", _f_measure(1), of_share=True, truth=lambda of: _f_value(of, 1)),
    Quantity("F2", _f_measure(4), of_share=True, truth=lambda of: _f_value(of, 4)),
    Quantity(
        "balanced accuracy",
        Composite(_balanced, {"detection": _detected, "acceptance": _accepted}),
        of_share=True,
        truth=lambda of: of.rate,
    ),
    Quantity("macro average", MacroAverage(_right, pl.lit(True), pl.col("label")), truth=lambda of: of.rate),
    Quantity("mean of counts", Mean(pl.col("count"), low=0), truth=lambda of: COUNTED * of.rate),
    Quantity("mean of amounts", Mean(pl.col("amount"), low=0), of_rate=False, truth=float(np.exp(0.5))),
    Quantity(
        "mean of heavy amounts", Mean(pl.col("heavy"), low=0), False, truth=float(np.exp(HEAVY**2 / 2)), before=_HEAVY
    ),
    Quantity("mean without bounds", Mean(pl.col("normal")), of_rate=False, truth=0.0),
    Quantity("median", Quantile(pl.col("amount"), 0.5), of_rate=False, truth=1.0),
    Quantity("90th percentile", Quantile(pl.col("amount"), 0.9), of_rate=False),
    Quantity("standard deviation of scores", population_std(_score, low=0, high=1), truth=_deviation_of_scores),
    Quantity("standard deviation", population_std(pl.col("normal")), of_rate=False, truth=1.0),
    Quantity(
        "deviation of repeats", pooled_within(pl.col("normal"), ("model", "sample")), of_rate=False, repeats_only=True
    ),
    Quantity("Cohen's kappa", cohen_kappa(_raters[0], _raters[1], (True, False))),
    Quantity("Fleiss' kappa", fleiss_kappa(_votes, 3)),
    Quantity("Krippendorff's alpha", krippendorff_alpha(_votes)),
    Quantity("Gwet's AC1", gwet_ac1(_raters[0], _raters[1], (True, False))),
    Quantity("Pearson's correlation", pearson(pl.col("x"), pl.col("y")), truth=lambda of: of.rate),
    Quantity("intraclass correlation", icc_2_1([pl.col("x"), pl.col("y")])),
    Quantity("ECE", ece(_confidence, _right), truth=_ece_value),
    Quantity("ECE, debiased", ece_debiased(_confidence, _right), truth=_ece_value),
    Quantity("ECE, equal mass", ece_adaptive(_confidence, _right)),
    Quantity("largest calibration error", mce(_confidence, _right)),
    Quantity("ECE, calibrated", ece(_confidence, _honest), False, truth=0.0, before=_CALIBRATED),
    Quantity("ECE, debiased, calibrated", ece_debiased(_confidence, _honest), False, truth=0.0, before=_CALIBRATED),
    Quantity("ECE, equal mass, calibrated", ece_adaptive(_confidence, _honest), False, truth=0.0, before=_CALIBRATED),
    Quantity(
        "Brier score",
        Mean((_confidence - _right.cast(pl.Float64)) ** 2, low=0, high=1),
        truth=lambda of: float(np.mean([c**2 - 2 * c * of.rate + of.rate for c in CONFIDENCES])),
    ),
    Quantity("Brier reliability", CalibrationError(_confidence, _right, "reliability")),
    Quantity("Brier resolution", CalibrationError(_confidence, _right, "resolution")),
    Quantity("Brier uncertainty", CalibrationError(_confidence, _right, "uncertainty")),
    Quantity(
        "SUI",
        Composite(
            _index,
            {
                "f2": _f_measure(4),
                "found": _detected,
                "valid": _valid,
                "reasoning": _reasoning,
                "ece": ece(_confidence, _right),
            },
        ),
        of_share=True,
        truth=_sui_value,
    ),
    Quantity(
        "product of rates",
        Composite(_understanding, {"found": _detected, "reasoning": _reasoning, "valid": _valid}),
        of_share=True,
        truth=lambda of: of.rate**2 * _mean_where_right(of),
    ),
)
