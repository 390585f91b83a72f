"""Agreement of several raters on the same samples: nominal kappas and alpha, intraclass and product-moment correlation.

Each is declared from expressions over rows that hold all raters' answers to one sample, and is a composite metric like
any other: a function of sums, with a bootstrap over samples. A statistic without variation to explain is undefined.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from metrics.composite import Composite, Sums
from metrics.estimators import Rate
from metrics.intervals import Array

ROUNDING = 1e-12
"""Variation below this share of the mean square is rounding error of the sums, not variation."""


def votes(raters: Sequence[pl.Expr], categories: Sequence[object]) -> list[pl.Expr]:
    """How many raters chose each category, given each rater's answer (null: none)."""
    return [
        pl.sum_horizontal(*[(rater == pl.lit(category)).fill_null(False).cast(pl.Int64) for rater in raters])
        for category in categories
    ]


def percent_agreement(first: pl.Expr, second: pl.Expr) -> Rate:
    """Share of the samples answered by both on which both answered the same."""
    return Rate(first == second)


def _cohen(s: Sums, categories: int) -> Array:
    table = np.stack([np.stack([s[f"{i}~{j}"] for j in range(categories)], -1) for i in range(categories)], -2)
    total = table.sum(axis=(-1, -2))
    observed = np.trace(table, axis1=-2, axis2=-1) / total
    expected = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / total**2
    return np.asarray((observed - expected) / (1 - expected))


def cohen_kappa(first: pl.Expr, second: pl.Expr, categories: Sequence[object]) -> Composite:
    """Chance-corrected agreement of two raters (Cohen 1960), over samples on which both chose one of the categories."""
    chosen = (
        [(first == pl.lit(c)).fill_null(False) for c in categories],
        [(second == pl.lit(c)).fill_null(False) for c in categories],
    )
    cells = {f"{i}~{j}": a & b for i, a in enumerate(chosen[0]) for j, b in enumerate(chosen[1])}
    return Composite(
        partial(_cohen, categories=len(categories)),
        cells,
        n=pl.any_horizontal(*cells.values()),
        explains_variation=True,
    )


def _agreement_sums(counts: Sequence[pl.Expr], considered: pl.Expr) -> dict[str, pl.Expr]:
    answers = pl.sum_horizontal(*counts)
    pairs = pl.sum_horizontal(*[count * (count - 1) for count in counts])
    sums: dict[str, pl.Expr] = {f"category {i}": pl.when(considered).then(count) for i, count in enumerate(counts)}
    return sums | {"agreeing": pl.when(considered).then(pairs / (answers - 1))}


def _totals(s: Sums, categories: int) -> Array:
    return np.stack([s[f"category {i}"] for i in range(categories)], axis=-1)


def _fleiss(s: Sums, categories: int) -> Array:
    totals = _totals(s, categories)
    answers = totals.sum(axis=-1)
    expected = (totals**2).sum(axis=-1) / answers**2
    return np.asarray((s["agreeing"] / answers - expected) / (1 - expected))


def fleiss_kappa(counts: Sequence[pl.Expr], raters: int) -> Composite:
    """Chance-corrected agreement of `raters` raters (Fleiss 1971), over samples that every one of them answered.

    counts  how many raters chose each category, as from `votes`
    """
    complete = pl.sum_horizontal(*counts) == raters
    return Composite(
        partial(_fleiss, categories=len(counts)), _agreement_sums(counts, complete), n=complete, explains_variation=True
    )


def _alpha(s: Sums, categories: int) -> Array:
    totals = _totals(s, categories)
    answers = totals.sum(axis=-1)
    disagreeing = answers - s["agreeing"]
    return np.asarray(1 - (answers - 1) * disagreeing / (answers**2 - (totals**2).sum(axis=-1)))


def krippendorff_alpha(counts: Sequence[pl.Expr]) -> Composite:
    """Krippendorff's alpha for nominal data (2011), over samples with two answers or more; counts as from `votes`."""
    paired = pl.sum_horizontal(*counts) >= 2
    return Composite(
        partial(_alpha, categories=len(counts)), _agreement_sums(counts, paired), n=paired, explains_variation=True
    )


def _icc(s: Sums, raters: int) -> Array:
    n, k = s["n"], raters
    columns = np.stack([s[f"rater {j}"] for j in range(k)], axis=-1)
    correction = columns.sum(axis=-1) ** 2 / (n * k)
    total = s["squares"] - correction
    between_samples = s["squared means"] * k - correction
    between_raters = (columns**2).sum(axis=-1) / n - correction
    ms_samples = between_samples / (n - 1)
    ms_raters = between_raters / (k - 1)
    ms_error = (total - between_samples - between_raters) / ((n - 1) * (k - 1))
    icc = (ms_samples - ms_error) / (ms_samples + (k - 1) * ms_error + k * (ms_raters - ms_error) / n)
    return np.where(total > ROUNDING * s["squares"], icc, np.nan)


def icc_2_1(scores: Sequence[pl.Expr]) -> Composite:
    """Intraclass correlation ICC(2,1): absolute agreement, random raters, one score each (Shrout and Fleiss 1979).

    Over samples that every rater scored.
    """
    complete = pl.all_horizontal(*[score.is_not_null() for score in scores])
    values = [pl.when(complete).then(score).cast(pl.Float64) for score in scores]
    sums = {f"rater {j}": value for j, value in enumerate(values)} | {
        "n": complete,
        "squares": pl.sum_horizontal(*[value**2 for value in values]),
        "squared means": pl.when(complete).then((pl.sum_horizontal(*values) / len(values)) ** 2),
    }
    return Composite(partial(_icc, raters=len(scores)), sums, n=complete, explains_variation=True)


def _pearson(s: Sums) -> Array:
    n = s["n"]
    xx, yy = s["xx"] - s["x"] ** 2 / n, s["yy"] - s["y"] ** 2 / n
    correlation = (s["xy"] - s["x"] * s["y"] / n) / np.sqrt(xx * yy)
    varied = (xx > ROUNDING * s["xx"]) & (yy > ROUNDING * s["yy"])
    return np.where(varied, np.clip(correlation, -1.0, 1.0), np.nan)


def pearson(first: pl.Expr, second: pl.Expr) -> Composite:
    """Product-moment correlation of two scores (Pearson 1895), over samples that have both."""
    both = first.is_not_null() & second.is_not_null()
    x, y = (pl.when(both).then(score).cast(pl.Float64) for score in (first, second))
    return Composite(
        _pearson, {"n": both, "x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}, n=both, explains_variation=True
    )
