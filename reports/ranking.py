"""Rank bands: models whose paired difference on the same samples is not significant share one.

The difference of two models is that of their balanced accuracies: the mean over labels of the difference of their rates
of right answers. Its p value is McNemar's exact test, label by label: where two equally good models disagree on a
sample, either is as likely to be the right one, so the difference is a weighted sum of fair coins, whose distribution
is known. With one label it is McNemar's test itself. P values are Holm-adjusted over all pairs of one judge's models.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from contracts.errors import MetricError

SIGNIFICANT_BELOW = 0.05


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the samples that both answered: `difference` is first minus second, in balanced accuracy.

    Difference and p values are None where a label has no sample that both answered.
    """

    first: str
    second: str
    samples: int
    difference: float | None
    p: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """A model's place. Equal values share a rank; without a value there is neither rank nor band."""

    model: str
    value: float | None
    rank: int | None
    band: int | None


def compare_all(answers: pl.DataFrame) -> tuple[Comparison, ...]:
    """Every pair of models. `answers` has the columns model, sample, label (may be null) and correct (null: left out).

    Raises MetricError where a model has two answers for one sample, which cannot be paired.
    """
    known = answers.drop_nulls("correct")
    if known.select("model", "sample").is_duplicated().any():
        raise MetricError("Models cannot be compared: one has two answers for the same sample and replicate.")
    models = known["model"].unique().sort().to_list()
    by_label = [_matrix(part, models) for _, part in sorted(known.group_by("label"), key=lambda group: str(group[0]))]
    compared = [_compare(models, i, j, by_label) for i, j in combinations(range(len(models)), 2)]
    adjusted = iter(holm([c.p for c in compared if c.p is not None]))
    return tuple(
        c if c.p is None else Comparison(c.first, c.second, c.samples, c.difference, c.p, next(adjusted))
        for c in compared
    )


def stand(
    values: Mapping[str, float | None], compared: Sequence[Comparison], *, higher_is_better: bool = True
) -> tuple[Standing, ...]:
    """Models by value, best first; those without one last, by name.

    A band's first model is its best; the next model down joins the band unless it is significantly worse than that one,
    in which case it opens the next. Models that share no samples cannot be told apart, and share a band.
    """
    worse = {pair for c in compared for pair in _significant(c)}
    sign = -1.0 if higher_is_better else 1.0
    ranked = sorted(
        ((model, value) for model, value in values.items() if value is not None), key=lambda mv: (sign * mv[1], mv[0])
    )
    standings: list[Standing] = []
    leader, band = "", 0
    for place, (model, value) in enumerate(ranked, start=1):
        if not standings or (leader, model) in worse:
            leader, band = model, band + 1
        tied = bool(standings) and standings[-1].value == value
        standings.append(Standing(model, value, standings[-1].rank if tied else place, band))
    return (*standings, *(Standing(model, None, None, None) for model in sorted(values) if values[model] is None))


def exact_p(gains: Sequence[int], losses: Sequence[int], sizes: Sequence[int]) -> float:
    """Two-sided p of the mean over labels of (gains - losses) / size under fair coins for every disagreement.

    One entry a label: samples that only the first model got right, only the second, and all. Exact: whole numbers over
    a common denominator are compared. Time and memory grow with the product of the disagreements of all labels but one.
    """
    from scipy.stats import binom

    scale = math.lcm(*sizes)
    strata = sorted((b + c, scale // n) for b, c, n in zip(gains, losses, sizes, strict=True))
    observed = abs(sum((b - c) * (scale // n) for b, c, n in zip(gains, losses, sizes, strict=True)))
    if observed == 0:
        return 1.0
    needed, weight = np.array([observed], dtype=np.int64), np.ones(1)
    for coins, step in strata[:-1]:
        heads = np.arange(coins + 1)
        needed = (needed[:, None] - (2 * heads - coins) * step).ravel()
        weight = (weight[:, None] * binom.pmf(heads, coins, 0.5)).ravel()
    coins, step = strata[-1]
    at_least = -((-needed - coins * step) // (2 * step))
    return min(1.0, 2 * float(weight @ binom.sf(at_least - 1, coins, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: the k-th smallest of m times m - k + 1, made non-decreasing, at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(value) for value in adjusted]


def _matrix(answers: pl.DataFrame, models: Sequence[str]) -> npt.NDArray[np.int8]:
    """One row a model, one column a sample: 1 right, 0 wrong, -1 not answered."""
    samples = answers["sample"].rank("dense").to_numpy() - 1
    rows = answers["model"].replace_strict(models, range(len(models)), return_dtype=pl.Int64).to_numpy()
    matrix = np.full((len(models), samples.max() + 1), -1, dtype=np.int8)
    matrix[rows, samples] = answers["correct"].to_numpy()
    return matrix


def _compare(models: Sequence[str], i: int, j: int, by_label: Sequence[npt.NDArray[np.int8]]) -> Comparison:
    sizes = [int(((m[i] >= 0) & (m[j] >= 0)).sum()) for m in by_label]
    if not all(sizes):
        return Comparison(models[i], models[j], sum(sizes), None, None, None)
    gains = [int(((m[i] == 1) & (m[j] == 0)).sum()) for m in by_label]
    losses = [int(((m[i] == 0) & (m[j] == 1)).sum()) for m in by_label]
    difference = sum(Fraction(b - c, n) for b, c, n in zip(gains, losses, sizes, strict=True)) / len(sizes)
    return Comparison(models[i], models[j], sum(sizes), float(difference), exact_p(gains, losses, sizes), None)


def _significant(c: Comparison) -> list[tuple[str, str]]:
    """(better, worse) where the difference is significant."""
    if c.p_adjusted is None or c.difference is None or c.p_adjusted >= SIGNIFICANT_BELOW:
        return []
    return [(c.first, c.second) if c.difference > 0 else (c.second, c.first)]
