"""How far the decisions of two agree: agreement by decision with intervals over units, and beyond chance."""

import math
from collections.abc import Iterator, Sequence

import polars as pl

from metrics.agreement import cohen_kappa, gwet_ac1, mean_absolute_difference, quadratic_kappa
from metrics.compute import measure
from metrics.definition import Metric
from metrics.weighted_rate import WeightedRate

PAIRS = pl.Schema(
    {**dict.fromkeys(("judge", "decision", "cluster", "first", "second"), pl.String()), "agrees": pl.Boolean()}
)
"""One decision about one thing, as both took it; `agrees` where they mean the same."""

WEIGHED_PAIRS = pl.Schema({**PAIRS, "weight": pl.Float64(), "first_score": pl.Float64(), "second_score": pl.Float64()})
"""Pairs of which each stands for as many as its weight says; the scores are the answers where these are numbers."""


def agreement_table(pairs: pl.DataFrame, decisions: Sequence[str]) -> pl.DataFrame:
    """Measure agreement: one row for each judge and each decision that has pairs, in the order of `decisions`.

    Pairs are PAIRS, each of which counts alike, or WEIGHED_PAIRS.
    Kappa is Cohen's, of scores weighed by the square of their difference, and null where nothing varies; `ac1` is
    Gwet's, of words; `difference` is the mean absolute difference of scores.
    """
    if "weight" not in pairs.columns:
        unknown = pl.lit(None, pl.Float64)
        pairs = pairs.with_columns(weight=1.0, first_score=unknown, second_score=unknown)
    rows = [
        _measured(pairs.filter(pl.col("judge") == judge, pl.col("decision") == decision), judge, decision)
        for judge in pairs["judge"].unique().sort()
        for decision in decisions
    ]
    return pl.DataFrame([row for row in rows if row is not None], infer_schema_length=None)


def _measured(pairs: pl.DataFrame, judge: str, decision: str) -> dict[str, object] | None:
    if pairs.is_empty():
        return None
    declared = {metric.name: metric for metric in _metrics(pairs)}
    measured = measure(pairs, list(declared.values()), groups=("judge",), cluster="cluster")
    values = {row["metric"]: row for row in measured.to_dicts()}
    share = values["agreement"]
    return {
        "judge": judge,
        "decision": decision,
        "agreement": share["value"],
        **{name: share[name] for name in ("ci_low", "ci_high")},
        **{name: values[name]["value"] if name in values else None for name in ("kappa", "ac1", "difference")},
        **{name: share[name] for name in ("n", "units", "reliable")},
    }


def _metrics(pairs: pl.DataFrame) -> Iterator[Metric]:
    first, second, weight = pl.col("first"), pl.col("second"), pl.col("weight")
    yield Metric("agreement", WeightedRate(pl.col("agrees"), weight=weight))
    categories = sorted({*pairs["first"].drop_nulls(), *pairs["second"].drop_nulls()})
    if len(categories) > 1:
        yield Metric("kappa", cohen_kappa(first, second, categories, weight))
        yield Metric("ac1", gwet_ac1(first, second, categories, weight))
    if pairs["first_score"].count():
        scores = pl.col("first_score"), pl.col("second_score")
        yield Metric("kappa", quadratic_kappa(*scores, weight))
        yield Metric("difference", mean_absolute_difference(*scores, weight, most=math.inf))
