"""Simulations: in how many of many samples an interval holds the true value, and a test errs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from benchmarks.coverage.populations import RATES, SHARES, SIZES, STRUCTURES, Population, Structure
from benchmarks.coverage.quantities import QUANTITIES, Quantity
from metrics import Metric, measure
from metrics.compare import compare

WHOLE = 100_000
"""Rows of the sample that stands for a population, whose value is taken for the true one."""
SEED = 13
ALPHA = 0.05
DRAWS = 999
LEAST, MOST = 0.93, 0.98
SELDOM = 0.05
"""Where fewer samples than this share have an interval, nothing is said of it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated population and size: how often the interval held the value; its mean width."""

    name: str
    population: Population
    size: int
    coverage: float
    width: float


def cells(
    times: int,
    quantities: Sequence[Quantity] = QUANTITIES,
    sizes: Sequence[int] = SIZES,
    rates: Sequence[float] = RATES,
    structures: Sequence[Structure] = STRUCTURES,
    whole: int = WHOLE,
) -> Iterator[Cell]:
    """Simulate every quantity in every population that it depends on, with `times` samples of each size."""
    for structure, rate, share in product(structures, rates, SHARES):
        chosen = [each for each in quantities if _depends(each, rate, share, structure)]
        if not chosen:
            continue
        population = Population(rate, share, structure)
        metrics = [Metric(each.name, each.estimator) for each in chosen]
        known = measure(population.draw(whole // structure.repeats, 1, SEED + 1), metrics, cluster="cluster")
        truth = dict(known.select("metric", "value").iter_rows())
        for size in sizes:
            measured = measure(population.draw(size, times, SEED), metrics, cluster="cluster")
            for metric in metrics:
                of_metric = measured.filter(pl.col("metric") == metric.name)
                ends = of_metric.drop_nulls(["ci_low", "ci_high"])
                if ends.height < SELDOM * times or truth[metric.name] is None:
                    continue
                held = ends.select(
                    (
                        (pl.col("ci_low") <= truth[metric.name] + 1e-9)
                        & (pl.col("ci_high") >= truth[metric.name] - 1e-9)
                    ).mean()
                )
                width = ends.select((pl.col("ci_high") - pl.col("ci_low")).mean())
                yield Cell(metric.name, population, size, float(held.item()), float(width.item()))


def _depends(quantity: Quantity, rate: float, share: float, structure: Structure) -> bool:
    return (
        (quantity.of_rate or rate == 0.5)
        and (quantity.of_share or share == 0.5)
        and (structure.repeats > 1 or not quantity.repeats_only)
    )


def compared(
    quantity: Quantity, population: Population, size: int, times: int, *, alike: float = 0.8, gain: float = 0.0
) -> tuple[float, float]:
    """Compare two models, `times` times.

    Args:
        quantity: What they are compared in.
        population: What the second model's answers are drawn from.
        size: Samples of each comparison.
        times: How many comparisons.
        alike: The share of samples on which the first model answers as the second does; on the others it is drawn anew
            from the same population, sample by sample, so that the two are equal but for `gain`.
        gain: The share of all answers in which the first model is right where it was wrong otherwise.

    Returns:
        The share of comparisons with p below 5 %, and of paired intervals that hold the true difference.
    """
    rng = np.random.default_rng([SEED, size, times])
    second, other = (population.draw(size, times, SEED + seed) for seed in (2, 3))
    samples = second.select(pl.col("cluster").unique().sort())
    kept = samples.with_columns(kept=pl.Series(rng.random(samples.height) < alike))
    answer = second.join(kept, on="cluster", how="left", maintain_order="left")["kept"]
    drawn = [name for name in other.columns if name not in ("model", "cluster", "sample", "judge", "label", "positive")]
    first = second.with_columns(pl.when(answer).then(second[name]).otherwise(other[name]).alias(name) for name in drawn)
    if gain:
        lifted = pl.Series(rng.random(first.height) < gain / (1 - population.rate))
        first = first.with_columns(right=first["right"] | lifted)
    a, b = (side.with_columns(judge=pl.col("model").cast(pl.String)) for side in (first, second))
    rows = compare(a, b, [Metric(quantity.name, quantity.estimator)], cluster="cluster", pair="sample", draws=DRAWS)
    held = rows.drop_nulls("ci_low").select(((pl.col("ci_low") <= gain) & (gain <= pl.col("ci_high"))).mean()).item()
    significant = rows.select((pl.col("p") < ALPHA).fill_null(False).mean()).item()
    return float(significant), float(held)
