"""Simulations: in how many of many samples an interval holds the true value, and a test errs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from benchmarks.coverage.populations import RATES, SHARES, SIZES, STRUCTURES, Population, Structure
from benchmarks.coverage.quantities import QUANTITIES, Quantity
from evalake.metrics.compare import compare
from evalake.metrics.compute import Metric, measure

WHOLE = 200_000
"""Rows of the sample that stands for a population, whose value is taken for the true one."""
SEED = 13
ALPHA = 0.05
DRAWS = 999
LEAST, MOST = 0.93, 0.98
MARKED = 0.9
"""Where `reliable` marks such a share of the samples, the interval makes no promise."""
SHARED = 0.8
SELDOM = 0.05
"""A cell or comparison is left out where a smaller share than this of its samples has an interval."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated population and size: how often the interval held the value; its mean width; of how many samples.

    `marked` is the share of them that `reliable` marks.
    """

    name: str
    population: Population
    size: int
    coverage: float
    width: float
    times: int
    marked: float = 0.0


def cells(
    times: int,
    quantities: Sequence[Quantity] = QUANTITIES,
    sizes: Sequence[int] = SIZES,
    rates: Sequence[float] = RATES,
    structures: Sequence[Structure] = STRUCTURES,
    shares: Sequence[float] = SHARES,
    whole: int = WHOLE,
    seed: int = SEED,
) -> Iterator[Cell]:
    """Simulate every quantity in every population that it depends on, with `times` samples of each size."""
    for structure, rate, share in product(structures, rates, shares):
        chosen = [each for each in quantities if _depends(each, rate, share, structure)]
        if not chosen:
            continue
        population = Population(rate, share, structure)
        metrics = [Metric(each.name, each.estimator) for each in chosen]
        known = measure(population.draw(whole // structure.repeats, 1, SEED + 1), metrics, cluster="cluster")
        given = {each.name: each.true(population) for each in chosen if each.truth is not None}
        truth = dict(known.select("metric", "value").iter_rows()) | given
        for size in sizes:
            measured = measure(population.draw(size, times, seed), metrics, cluster="cluster")
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
                marked = 1 - float(ends.select(pl.col("reliable").mean()).item())
                yield Cell(metric.name, population, size, float(held.item()), float(width.item()), times, marked)


def settled(simulated: Sequence[Cell], times: int, whole: int = WHOLE) -> Iterator[Cell]:
    """Simulate cells of too low coverage again, with more and other samples than before, to tell chance from fault."""
    by_name = {quantity.name: quantity for quantity in QUANTITIES}
    for cell in simulated:
        if cell.coverage >= LEAST:
            yield cell
            continue
        of = cell.population
        places = (cell.size,), (of.rate,), (of.structure,), (of.share,)
        yield from cells(times, (by_name[cell.name],), *places, whole=whole, seed=SEED + 4)


def _depends(quantity: Quantity, rate: float, share: float, structure: Structure) -> bool:
    return (
        (quantity.of_rate or rate == 0.5)
        and (quantity.of_share or share == 0.5)
        and (structure.repeats > 1 or not quantity.repeats_only)
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """Two models compared many times: how often p was below 5 %, and the interval held the difference; its width."""

    name: str
    population: Population
    size: int
    lift: float
    significant: float
    coverage: float
    width: float
    times: int


def compared(
    quantities: Sequence[Quantity], population: Population, size: int, times: int, lift: float = 0.0, whole: int = WHOLE
) -> Iterator[Compared]:
    """Compare two models in every quantity, `times` times.

    Args:
        quantities: What they are compared in.
        population: What the second model's answers are drawn from.
        size: Samples of each comparison.
        times: How many comparisons.
        lift: The share of answers that the first model has right whatever it said otherwise; 0 for equal models.
        whole: Rows of the comparison whose difference is taken for the true one.
    """
    metrics = [Metric(each.name, each.estimator) for each in quantities]
    first, second = (
        dict(measure(side, metrics, cluster="cluster").select("metric", "value").iter_rows())
        for side in models(population, whole // population.structure.repeats, 1, lift, SEED + 1)
    )
    a, b = models(population, size, times, lift, SEED)
    rows = compare(a, b, metrics, cluster="cluster", pair="sample", draws=DRAWS)
    for metric in metrics:
        true = first[metric.name] - second[metric.name] if lift else 0.0
        known = rows.filter(metric=metric.name).drop_nulls("ci_low")
        if known.height < SELDOM * times:
            continue
        found = known.select(
            (pl.col("p") < ALPHA).mean(),
            held=((pl.col("ci_low") <= true + 1e-9) & (true - 1e-9 <= pl.col("ci_high"))).mean(),
            width=(pl.col("ci_high") - pl.col("ci_low")).mean(),
        )
        significant, held, width = map(float, found.row(0))
        yield Compared(metric.name, population, size, lift, significant, held, width, times)


def models(population: Population, size: int, times: int, lift: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw the answers of two models, each comparison under a judge of its own.

    The first answers as the second does on the samples of `SHARED` of the clusters; on the others its answers are drawn
    anew from the same population.
    """
    rng = np.random.default_rng([seed, size, times])
    second, other = (population.draw(size, times, seed + more) for more in (2, 3))
    clusters = second.select(pl.col("cluster").unique().sort())
    kept = clusters.with_columns(kept=pl.Series(rng.random(clusters.height) < SHARED))
    answer = second.join(kept, on="cluster", how="left", maintain_order="left")["kept"]
    drawn = [name for name in other.columns if name not in ("model", "cluster", "sample", "judge", "label", "positive")]
    first = second.with_columns(pl.when(answer).then(second[name]).otherwise(other[name]).alias(name) for name in drawn)
    lifted = pl.Series(rng.random(first.height) < lift)
    first = first.with_columns(
        right=pl.col("right") | lifted,
        score=pl.when(lifted).then(1.0).otherwise("score"),
        valid=pl.when(lifted).then("findings").otherwise("valid"),
    )
    first, second = (side.with_columns(judge=pl.col("model").cast(pl.String)) for side in (first, second))
    return first, second


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How often a conclusion is drawn in a kind of simulation, and between which shares that should lie."""

    name: str
    where: str
    times: int
    share: float
    least: float = 0.0
    most: float = 1.0
    before: str = ""
    """What was simulated before it was mended."""
    kind: str = ""
    """Of conclusions of one kind the page shows the worst."""

    @property
    def kept(self) -> bool:
        """Whether the share lies between `least` and `most`, give or take three standard errors."""
        return self.least - self._chance(self.least) <= self.share <= self.most + self._chance(self.most)

    def _chance(self, share: float) -> float:
        return 3 * float(np.sqrt(share * (1 - share) / self.times))
