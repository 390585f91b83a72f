"""How far one's decisions are another's: agreement by decision with intervals over units, and beyond chance."""

from collections.abc import Sequence

import polars as pl

from metrics.agreement import cohen_kappa
from metrics.compute import measure
from metrics.definition import Metric
from metrics.estimators import Rate

PAIRS = pl.Schema(
    {
        "judge": pl.String(),
        "decision": pl.String(),
        "cluster": pl.String(),
        "first": pl.String(),
        "second": pl.String(),
        "agrees": pl.Boolean(),
    }
)
"""One decision about one thing, as both took it; `agrees` where they mean the same."""


def agreement_table(pairs: pl.DataFrame, decisions: Sequence[str]) -> pl.DataFrame:
    """One row for each judge and each of the decisions that there are pairs of, in the order of `decisions`.

    Kappa is null where the answers are numbers on a scale, or do not vary.
    """
    rows = [
        _measured(pairs.filter(pl.col("judge") == judge, pl.col("decision") == decision), judge, decision)
        for judge in pairs["judge"].unique().sort()
        for decision in decisions
    ]
    return pl.DataFrame([row for row in rows if row is not None], infer_schema_length=None)


def _measured(pairs: pl.DataFrame, judge: str, decision: str) -> dict[str, object] | None:
    if pairs.is_empty():
        return None
    first, second = pl.col("first"), pl.col("second")
    categories = sorted({*pairs["first"].drop_nulls(), *pairs["second"].drop_nulls()})
    metrics = [Metric("agreement", Rate(pl.col("agrees")))]
    if len(categories) > 1:
        metrics.append(Metric("kappa", cohen_kappa(first, second, categories)))
    values = {row["metric"]: row for row in measure(pairs, metrics, groups=("judge",), cluster="cluster").to_dicts()}
    share, kappa = values["agreement"], values.get("kappa")
    return {
        "judge": judge,
        "decision": decision,
        "agreement": share["value"],
        "ci_low": share["ci_low"],
        "ci_high": share["ci_high"],
        "kappa": None if kappa is None else kappa["value"],
        "n": share["n"],
        "units": share["units"],
        "reliable": share["reliable"],
    }
