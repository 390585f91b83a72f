"""Where values differ: between samples, between repeats of one sample, between judges of the same answers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from metrics.compute import METRIC_ROWS, measure, metric_row
from metrics.definition import Metric
from metrics.intervals import Array
from metrics.spread import pooled_within

PANEL = "panel:"
"""What the names of panels begin with, whose values are not a judge's own."""

ITEM = ("sample_hash", "prompt_type")


def variance_components(frame: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """Split the variance of a value into components, as standard deviations, for what was repeated or judged twice.

    `sd_replicate` is the pooled standard deviation within an item's repeats; `sd_sample` what remains between items
    once that is taken off; `sd_judge` how far judges of the same answers lie apart as a whole (a two-way analysis of
    variance), kept under the name of all of a model's judges together.

    Args:
        frame: Result rows with model, judge, sample_hash, prompt_type, replicate and cluster.
        value: What is repeated.

    Returns:
        Rows in the columns of `measure`, none where nothing was repeated.
    """
    rows = frame.with_columns(value.cast(pl.Float64).alias("value")).drop_nulls("value")
    rows = rows.with_columns(pl.lit("").alias(name) for name in ITEM if name not in rows.columns)
    repeated = rows.group_by("model", "judge", *ITEM).len().filter(pl.col("len") > 1)
    known = rows.join(repeated, on=["model", "judge"], how="semi", nulls_equal=True)
    parts = [pl.DataFrame(schema=METRIC_ROWS)]
    if not known.is_empty():
        within = pooled_within(pl.col("value"), ("model", "judge", *ITEM))
        parts.append(measure(known, [Metric("sd_replicate", within)], cluster="cluster"))
        parts.append(pl.DataFrame(list(_between_samples(known)), schema=METRIC_ROWS))
    parts.append(pl.DataFrame(list(_between_judges(rows)), schema=METRIC_ROWS))
    return pl.concat([part.select(METRIC_ROWS.keys()) for part in parts])


def _between_samples(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    items = rows.group_by("model", "judge", *ITEM).agg(
        pl.col("value").mean().alias("mean"),
        pl.col("value").var().alias("variance"),
        pl.len().alias("times"),
        pl.col("cluster").first(),
    )
    for (model, judge), part in items.sort("model", "judge", *ITEM).group_by("model", "judge", maintain_order=True):
        freedom = part["times"].to_numpy() - 1.0
        squares = part["variance"].fill_null(0.0).to_numpy() * freedom
        within = squares.sum() / freedom.sum()
        noise = within * float(np.mean(1 / part["times"].to_numpy()))
        between = None if part.height < 2 else max(0.0, float(np.var(part["mean"].to_numpy(), ddof=1)) - noise)
        units = part["cluster"].n_unique()
        yield metric_row(model, judge, "sd_sample", n=part.height, units=units, value=_root(between))


def _between_judges(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    single = rows.filter(pl.col("judge").is_not_null(), ~pl.col("judge").str.starts_with(PANEL))
    of_panels = rows.filter(pl.col("judge").str.starts_with(PANEL)).select("model", "judge").unique().sort("judge")
    for (model,), part in single.sort("model").group_by("model", maintain_order=True):
        judges = sorted(part["judge"].unique())
        if len(judges) < 2:
            continue
        named = of_panels.filter(pl.col("model") == model)["judge"].to_list()
        wide = part.pivot("judge", index=[*ITEM, "replicate", "cluster"], values="value", aggregate_function="mean")
        wide = wide.drop_nulls()
        variance = _judge_variance(wide.select(judges).to_numpy()) if wide.height > 1 else None
        known = {"n": wide.height, "units": wide["cluster"].n_unique()}
        together = "+".join(judges)
        panels = [name for name in named if name.endswith(f":{together}")] or [PANEL + together]
        yield from (metric_row(model, panel, "sd_judge", **known, value=_root(variance)) for panel in panels)


def _judge_variance(table: Array) -> float:
    """Compute from values [answers, judges] the variance component of judges; 0 where it is no more than noise."""
    answers, judges = table.shape
    means = table.mean(axis=0)
    residual = table - table.mean(axis=1, keepdims=True) - means + table.mean()
    error = (residual**2).sum() / ((answers - 1) * (judges - 1))
    return max(0.0, float(np.var(means, ddof=1) - error / answers))


def _root(variance: float | None) -> float | None:
    return None if variance is None else variance**0.5
