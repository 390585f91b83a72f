"""Where values differ: between samples, between repeats of one sample, between judges of the same answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from typing_extensions import override

from evalake.metrics.agreement import PANEL
from evalake.metrics.compute import METRIC_ROWS, Metric, measure, metric_row
from evalake.metrics.estimator import LEAST_WEIGHT, Draw, Estimate, Estimator, bounded, quotient
from evalake.metrics.estimators import FROM_UNITS, share_of_largest
from evalake.metrics.intervals import Array, student
from evalake.metrics.units import Linearised, View

# Standard deviations, of values and of repeats: intervals on the log scale.


ROUNDING = 1e-14
"""Variation below this share of the mean square is rounding error of the sums, not variation."""

MOST_OF_LARGEST = 0.3
"""Where the largest 5 % of the units make a larger share of the squares, a deviation without bounds rests on few of
them. Of normal values they make a fifth."""


@dataclass(frozen=True, eq=False)
class Deviation(Estimator):
    """The population's standard deviation (ddof 0) over the rows that have a value, between `low` and `high`.

    Where values have bounds, the interval allows for unseen ones at a bound as that of a mean does, so it has a width
    where all values seen are equal; without bounds there is none then.
    """

    quantity: pl.Expr
    low: float = -np.inf
    high: float = np.inf

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        value = self.quantity.cast(pl.Float64)
        return {"value": value, "square": value**2, "known": value.is_not_null()}

    @override
    def drawn(self, draw: Draw) -> Array:
        n = draw.sums("known")
        mean, square = quotient(draw.sums("value"), n), quotient(draw.sums("square"), n)
        return np.asarray(np.sqrt(np.where(square - mean**2 > ROUNDING * square, square - mean**2, 0.0)))

    @override
    def estimate(self, view: View) -> Estimate:
        n = view.totals("known")
        mean = view.ratio("value", "known").value
        known, of_row = view.values("known") != 0, np.nan_to_num(mean)[view.units.row_group]
        deviations = view.units.by_unit(np.where(known, view.values("value") - of_row, 0.0) ** 2)
        varied = quotient(view.units.total(deviations), n) > ROUNDING * mean**2
        line = Linearised(deviations * view.units.spread(varied.astype(np.float64)), view.over("known"))
        with np.errstate(all="ignore"):
            farthest = np.maximum(mean - self.low, self.high - mean)
        return _root_of_sum(line, n, farthest, (self.high - self.low) / 2)


@dataclass(frozen=True, eq=False)
class Repeats(Estimator):
    """The root of the pooled variance within what repeats measure: sum of `squares` over sum of `freedom`.

    Attributes:
        squares: Each row's squared deviation from the mean of its repeats.
        freedom: Each row's share of the degrees of freedom: 1 - 1/repeats.
        n: What each row contributes to the number of things measured repeatedly.
    """

    counted: ClassVar[frozenset[str]] = frozenset({"n"})
    squares: pl.Expr
    freedom: pl.Expr
    n: pl.Expr

    @override
    def inputs(self) -> Mapping[str, pl.Expr]:
        return {"squares": self.squares, "freedom": self.freedom, "n": self.n}

    @override
    def drawn(self, draw: Draw) -> Array:
        return np.asarray(np.sqrt(quotient(draw.sums("squares"), draw.sums("freedom"))))

    @override
    def estimate(self, view: View) -> Estimate:
        line = view.ratio("squares", "freedom")
        n = np.where(line.below.total > 0, view.totals("n"), 0.0)
        return _root_of_sum(line, n, np.full_like(n, np.inf), np.inf)


def _root_of_sum(line: Linearised, n: Array, farthest: Array, most: float) -> Estimate:
    """Estimate the root of a mean square whose squares are at most `farthest`², and which is itself at most `most`.

    Mean squares are skewed to the right: the upper end reaches further by the square of the relative half width.
    """
    value = np.sqrt(line.value)
    with np.errstate(all="ignore"):
        se = np.where(line.value > 0, np.sqrt(line.variance) / (2 * value), np.nan)
        half = student(line.effective) * se / value
        low, high = value * np.exp(-half), np.minimum(value * np.exp(half + half**2), most)
        bound = np.where(np.isfinite(farthest) & (farthest > 0), farthest**2, np.nan)
        least, largest = (np.sqrt(end) for end in bounded(line, 0.0, bound, LEAST_WEIGHT))
        low, high = np.fmin(low, least), np.fmax(high, np.minimum(largest, most))
    low, high = np.where(np.isnan(value), np.nan, low), np.where(np.isnan(value), np.nan, high)
    units = line.count * (n > 0)
    fewest = units
    if not np.isfinite(most):
        few = (share_of_largest(line.units, line.numerator) > MOST_OF_LARGEST) | (units < FROM_UNITS)
        fewest = np.where(few, 0.0, units)

    def influence() -> Array:
        slope = np.where(line.value > 0, 1 / (2 * np.where(value > 0, value, 1.0)), 0.0)
        return np.asarray(line.influence * line.units.spread(slope))

    return Estimate(value, n, units, np.where(n > 0, units, np.nan), se, low, high, fewest, influence)


def population_std(
    value: pl.Expr, where: pl.Expr | None = None, low: float = -np.inf, high: float = np.inf
) -> Deviation:
    """Declare the population's standard deviation (ddof 0) over the rows `where` that have a value."""
    return Deviation(value if where is None else pl.when(where).then(value), low, high)


def pooled_within(value: pl.Expr, of: tuple[str, ...]) -> Repeats:
    """Declare the pooled standard deviation (ddof 1) of a value that is known more than once for the columns `of`."""
    known = value.is_not_null()
    times = known.sum().over(of)
    repeated = known & (times > 1)
    deviation = (value.cast(pl.Float64) - value.cast(pl.Float64).mean().over(of)) ** 2
    first = repeated & (known.cast(pl.Int64).cum_sum().over(of) == 1)
    return Repeats(pl.when(repeated).then(deviation), pl.when(repeated).then(1 - 1 / times), n=first)


ITEM = ("sample_hash", "prompt_type")


def variance_components(lazy: pl.LazyFrame, value: pl.Expr) -> pl.DataFrame:
    """Split the variance of a value into components, as standard deviations, for what was repeated or judged twice.

    `sd_replicate` is the pooled standard deviation within an item's repeats; `sd_sample` what remains between items
    once that is taken off; `sd_judge` how far judges of the same answers lie apart as a whole (a two-way analysis of
    variance), kept under the name of all of a model's judges together.

    Args:
        lazy: Result rows with model, judge, sample_hash, prompt_type, replicate and cluster; only what is read of them
            is collected.
        value: What is repeated.

    Returns:
        Rows in the columns of `measure`, none where nothing was repeated.
    """
    read = {"model", "judge", "replicate", "cluster", *ITEM, *value.meta.root_names()}
    schema = lazy.collect_schema()
    lazy = lazy.select(name for name in schema if name in read)
    item = [pl.col(name) if name in schema else pl.lit("").alias(name) for name in ITEM]
    items = pl.struct(*item, "model").hash().alias("item").n_unique()
    counted = lazy.select(pl.col("judge").n_unique(), items, n=pl.len()).collect(engine="streaming")
    if counted["judge"].item() < 2 and counted["item"].item() == counted["n"].item():
        return pl.DataFrame(schema=METRIC_ROWS)
    frame = lazy.collect(engine="streaming")
    names = pl.col("model", "judge").cast(pl.String)
    rows = frame.select(names, "replicate", "cluster", *item, value=value.cast(pl.Float64)).drop_nulls("value")
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
