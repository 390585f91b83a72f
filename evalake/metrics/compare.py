"""Compare two sides, pair by pair of units: differences of any metric, their intervals, p values, and flips.

A unit is a cluster, as everywhere: repeats of a sample add rows to it, and no evidence. The p value is that of
exchanging the two sides' rows, unit by unit, as chance alone would: mid-p McNemar where each unit has one binary
answer. The interval is of what the units differ by; where they are too few for that, MOVER's, from those of the two
sides (Zou 2007; for proportions Newcombe 1998, method 10). It leaves out 0 where p is below 5 %, and only there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalake.core.errors import MetricError
from evalake.metrics.columns import Columns, Inputs, share_within
from evalake.metrics.compute import Metric, Slicing
from evalake.metrics.estimator import Estimate, Estimator
from evalake.metrics.estimators import MOST_OF_LARGEST, is_amount, is_share_of_rows, share_of_largest
from evalake.metrics.intervals import Array, Integers, difference, student
from evalake.metrics.units import Units, View

DRAWS = 5_000
"""Random exchanges behind a p value, besides the one observed."""

EXACT_UNITS = 12
"""Up to so many units that differ, every exchange is made instead."""

AT_ONCE = 4_000_000
"""Exchanges times units in memory at a time."""

SEED = 20_240_601

TIE = 1e-9
"""Differences closer than this share of the values are equal but for rounding."""

SIGNIFICANT_BELOW = 0.05
"""From such a p value on, the interval holds 0."""

UNEQUAL_SHAPE = 1.3
"""By how much amounts of one side may vary more than the other's, relative to their means, where tails are heavy."""

FEW, DIFFERING = 20, 5
"""Below so many units behind a side or a part of it, or so many that differ, MOVER's interval is taken."""

COMPARED: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("judge", "metric", "slice", "slice_value"), pl.String()),
    **dict.fromkeys(("value_a", "value_b", "difference", "ci_low", "ci_high", "p"), pl.Float64()),
    **dict.fromkeys(("units", "flips_to_a", "flips_to_b"), pl.Int64()),
    "mark": pl.String(),
}

Limits = tuple[float, float]


def compare(
    a: pl.DataFrame, b: pl.DataFrame, metrics: Sequence[Metric], *, cluster: str, pair: str, draws: int = DRAWS
) -> pl.DataFrame:
    """Compare every metric of two sides, in every slice, judge by judge, on the samples that both have.

    Args:
        a: One row per answer, as `measure` takes them, with the columns `judge`, `cluster` and `pair`.
        b: The other side's.
        metrics: What to compare.
        cluster: Column whose value makes rows one unit.
        pair: Column of the sample; rows of samples that the other side does not have under the judge are left out.
        draws: Random exchanges behind a p value where there are too many to make them all.

    Returns:
        The columns `COMPARED`, metrics and slices as declared. `difference` is a - b. Without uncertainty (counts,
        totals) there is neither interval nor p value; `flips_to_a` counts, for shares of conditions, the units that a
        answers better, and is null for all else. `mark` says why no significance can be claimed, null where it can.

    Raises:
        MetricError: Names the metric that cannot be computed, and why.
    """
    key = [pl.col("judge"), pl.col(pair)]
    sides = (
        a.join(b.select(key).unique(), on=["judge", pair], how="semi", nulls_equal=True).with_columns(side=pl.lit(0)),
        b.join(a.select(key).unique(), on=["judge", pair], how="semi", nulls_equal=True).with_columns(side=pl.lit(1)),
    )
    both = pl.concat(sides, how="diagonal").lazy()
    parts = both.head(sides[0].height), both.slice(sides[0].height)  # a model may be on both: windows know no side
    inputs = Inputs.read(parts, metrics, ("judge", "side"), cluster)
    if inputs.frame.is_empty():
        return pl.DataFrame(schema=COMPARED)
    columns = Columns(inputs.frame)
    names = dict.fromkeys(name for metric in metrics for name in metric.slices)
    slices = {name: Paired.of(inputs, columns, name) for name in names}
    rows = [
        {**row, "metric": metric.name, "slice": name}
        for number, metric in enumerate(metrics)
        for name in metric.slices
        if slices[name].pairs
        for row in _compared(metric, slices[name], columns, inputs.columns[number], draws)
    ]
    return pl.DataFrame(rows, schema=COMPARED)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Holm's step-down: the k-th smallest of m times m - k + 1, made non-decreasing, at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(value) for value in adjusted]


def with_holm(compared: pl.DataFrame) -> pl.DataFrame:
    """Add `p_holm` beside `p`: adjusted over all rows of the frame that have a p value."""
    tested = compared["p"].is_not_null()
    adjusted = iter(holm(compared["p"].drop_nulls().to_list()))
    values = [next(adjusted) if known else None for known in tested]
    return compared.insert_column(compared.get_column_index("p") + 1, pl.Series("p_holm", values, pl.Float64))


@dataclass(frozen=True, eq=False)
class Pair:
    """One judge and value of a slice: the two groups, their units, and where these are among the pair's clusters."""

    judge: str | None
    slice_value: str
    groups: tuple[int, int]
    units: tuple[Integers, Integers]
    places: tuple[Integers, Integers]
    clusters: Integers

    @property
    def size(self) -> int:
        """How many clusters there are on either side."""
        return len(self.clusters)

    def of_side(self, side: int, by_unit: Array) -> Array:
        """Arrange a side's values by unit in order of the pair's clusters, [clusters]; 0 where the side lacks one."""
        placed = np.zeros(self.size)
        placed[self.places[side]] = by_unit[self.units[side]]
        return placed


@dataclass(frozen=True, eq=False)
class Paired:
    """The units of a slice, and its pairs of groups."""

    units: Units
    pairs: Sequence[Pair]

    @classmethod
    def of(cls, inputs: Inputs, columns: Columns, name: str) -> "Paired":
        """Find the units of a slice, and pair the groups of its two sides."""
        slicing = Slicing.of(columns, name, ("judge", "side"))
        units = replace(Units.of(slicing.group, slicing.keys.height, inputs.cluster), strata=inputs.strata)
        of_unit = np.zeros(units.count, dtype=np.int64)
        of_unit[units.of_row] = inputs.cluster[units.rows]
        group_of: dict[tuple[str | None, str], dict[int, int]] = {}
        for number, (judge, side, value) in enumerate(slicing.keys.iter_rows()):
            group_of.setdefault((judge, value), {})[side] = number
        in_order = sorted(group_of.items(), key=lambda item: (item[0][0] or "", item[0][1]))
        both = [(*key, sides[0], sides[1]) for key, sides in in_order if len(sides) == 2]
        return cls(units, [cls._pair(units, of_unit, *each) for each in both])

    def stratified(self, pair: Pair, added: Array) -> float:
        """Compute the share of the variance of what a pair's clusters add, [clusters], that strata leave."""
        if self.units.stratum_of is None:
            return 1.0
        stratum = np.zeros(pair.size, dtype=np.int64)
        for side in (1, 0):
            stratum[pair.places[side]] = self.units.stratum_of[pair.units[side]]
        return float(share_within(added, stratum, np.zeros_like(stratum), 1)[0])

    @staticmethod
    def _pair(units: Units, of_unit: Integers, judge: str | None, value: str, a: int, b: int) -> Pair:
        first, second = (np.flatnonzero(units.group_of == group) for group in (a, b))
        clusters = np.union1d(of_unit[first], of_unit[second])
        places = np.searchsorted(clusters, of_unit[first]), np.searchsorted(clusters, of_unit[second])
        return Pair(judge, value, (a, b), (first, second), places, clusters)


@dataclass(frozen=True, eq=False)
class SwappedDraw:
    """Sums of one side's inputs when, in each draw, the sides' rows of some units are exchanged (a `Draw`)."""

    view: View
    pair: Pair
    side: int
    active: Integers
    exchanged: Array
    """[draws, active]: 1 where a unit's rows change sides, else 0."""

    def sums(self, role: str) -> Array:
        """Add up an input in each draw, [draws]."""
        return self._drawn(self.view.sums(role))

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each draw for every label above 0 of the view's rows, [draws, labels]."""
        values, units = self.view.values(role), self.view.units
        labels = range(1, int(label.max(initial=0)) + 1)
        by_label = (units.by_unit(np.where(label == each, values, 0.0)) for each in labels)
        drawn = [self._drawn(by_unit) for by_unit in by_label]
        return np.stack(drawn, axis=-1) if drawn else np.zeros((len(self.exchanged), 0))

    def part(self, name: str) -> "SwappedDraw":
        """Narrow the draw to the inputs of one part of a composite."""
        return replace(self, view=self.view.part(name))

    def _drawn(self, by_unit: Array) -> Array:
        own, other = self.pair.of_side(self.side, by_unit), self.pair.of_side(1 - self.side, by_unit)
        return np.asarray(own.sum() + self.exchanged @ (other - own)[self.active])


def _compared(
    metric: Metric, paired: Paired, columns: Columns, column_of: Mapping[str, str], draws: int
) -> Iterator[dict[str, str | float | None]]:
    """Compare one metric in one slice; yield a row for each pair."""
    view = View(columns, paired.units, column_of)
    try:
        estimate = metric.estimator.estimate(view)
    except MetricError as error:
        raise MetricError(f"Metric {metric.name}: {error}.") from error
    unequal = _of_unequal_shape(metric.estimator, view, paired)
    for pair, mark in zip(paired.pairs, unequal, strict=True):
        a, b = pair.groups
        value = estimate.value[a] - estimate.value[b]
        low, high, p_within = _interval(estimate, pair, paired) if estimate.make_influence else (np.nan, np.nan, None)
        binary = is_share_of_rows(metric.estimator, view)
        gains, losses, single = _flips(view, pair) if binary else (None, None, False)
        p = None
        if estimate.make_influence and not np.isnan(value):
            p = mcnemar(gains or 0, losses or 0) if single else _exchange_p(metric, view, pair, draws)
            p = p if p_within is None or p is None else p_within
        if p is not None:
            low, high = _agreeing(value, (low, high), 1.0 if mark else p)
        yield {
            "judge": pair.judge,
            "slice_value": pair.slice_value,
            "value_a": _known(estimate.value[a]),
            "value_b": _known(estimate.value[b]),
            "difference": _known(value),
            "ci_low": _known(low),
            "ci_high": _known(high),
            "p": None if mark else p,
            "units": int(min(estimate.units[a], estimate.units[b])),
            "flips_to_a": gains,
            "flips_to_b": losses,
            "mark": mark,
        }


def _of_unequal_shape(estimator: Estimator, view: View, paired: Paired) -> list[str | None]:
    """Mark pairs of means of amounts if one has a heavier tail: exchanges of units then err too often."""
    if not is_amount(estimator, view):
        return [None] * len(paired.pairs)
    line = view.ratio("numerator", "denominator")
    size = line.numerator / np.maximum(line.below.sums, 1)
    counts = np.maximum(line.count, 1)
    mean = view.units.total(size) / counts
    spread = np.sqrt(view.units.total((size - view.units.spread(mean)) ** 2) / counts)
    heavy = share_of_largest(view.units, line.numerator) > MOST_OF_LARGEST
    with np.errstate(all="ignore"):
        varied = spread / mean

    def mark(pair: Pair) -> str | None:
        a, b = (float(varied[group]) for group in pair.groups)
        alike = max(a, b) <= UNEQUAL_SHAPE * min(a, b)
        return None if alike or not heavy[list(pair.groups)].any() else "amounts of unequal shape"

    return [mark(pair) for pair in paired.pairs]


def _interval(estimate: Estimate, pair: Pair, paired: Paired) -> tuple[float, float, float | None]:
    """Compute the interval of a difference; two unseen units, one for either side, keep it from width zero.

    It is Student's between units, within what the sides' own intervals allow, or MOVER's where units are few. Where
    strata of the draw lessen the variance, Student's p within them is returned, too.
    """
    from scipy.special import stdtr

    p = None
    first, second = (pair.of_side(side, estimate.influence) for side in (0, 1))
    a, b = ([ends[group] for ends in (estimate.value, estimate.ci_low, estimate.ci_high)] for group in pair.groups)
    both, apart = np.concatenate((first, second)), first - second
    most = both.max(initial=0.0) - both.min(initial=0.0)
    varied = most > TIE * np.fmax(a[2] - a[1], b[2] - b[1])  # and not by rounding alone
    unseen = 2 * most**2
    groups = list(pair.groups)
    differing = np.count_nonzero(np.abs(apart) > TIE * most) if varied else 0
    if differing < DIFFERING or estimate.fewest[groups].min() < FEW:
        scale = np.sqrt((first**2).sum() * (second**2).sum())
        correlated = np.clip((first @ second - unseen / 2) / scale, -1.0, 1.0) if varied and scale > 0 else 0.0
        low, high = difference((a[0], a[1], a[2]), (b[0], b[1], b[2]), np.asarray(correlated))
    else:
        value, units, within = a[0] - b[0], estimate.units[groups].min(), paired.stratified(pair, apart)
        se = np.sqrt((apart**2).sum() * within + unseen)
        reach = student(units) * se
        p = float(2 * stdtr(units - 1, -abs(value) / se)) if within < 1 else None
        low, high = np.fmax(value - reach, a[1] - b[2]), np.fmin(value + reach, a[2] - b[1])
    return float(low), float(high), p


def _agreeing(value: float, interval: Limits, p: float) -> Limits:
    """Adjust an interval to the test: where p is significant its end stays short of 0, else the interval includes 0."""
    low, high = interval
    if p >= SIGNIFICANT_BELOW:
        return min(low, 0.0), max(high, 0.0)
    least = TIE * value
    return (max(low, least), high) if value > 0 else (low, min(high, least))


def _flips(view: View, pair: Pair) -> tuple[int, int, bool]:
    """Count the units that a answers better, and b, and tell whether each has one answer, however often repeated."""
    k_a, k_b = (pair.of_side(side, view.sums("successes")) for side in (0, 1))
    n_a, n_b = (pair.of_side(side, view.sums("of")) for side in (0, 1))
    shared = (n_a > 0) & (n_b > 0)
    better = np.where(shared, k_a * n_b - k_b * n_a, 0.0)
    rows = np.concatenate((n_a, n_b))
    rows = rows[rows > 0]
    alike = bool(len(rows)) and bool((rows == rows[0]).all()) and bool((shared == (n_a + n_b > 0)).all())
    decided = bool((((k_a == 0) | (k_a == n_a)) & ((k_b == 0) | (k_b == n_b))).all())
    return int((better > 0).sum()), int((better < 0).sum()), alike and decided


def mcnemar(gains: int, losses: int) -> float:
    """Compute the two-sided mid-p of so many flips either way, each of which is as likely as the other.

    Half of the probability of what was seen counts: the exact test errs in far less than 5 %, and finds less (Fagerland
    and others 2013).
    """
    from scipy.stats import binom

    fewer, flips = min(gains, losses), gains + losses
    return min(1.0, float(2 * binom.cdf(fewer, flips, 0.5) - binom.pmf(fewer, flips, 0.5)))


def _exchange_p(metric: Metric, view: View, pair: Pair, draws: int) -> float | None:
    """Compute the two-sided p under exchanges of units; None where the metric is no function of sums."""
    active = _active(metric, view, pair)
    extreme = count = 0
    observed = np.nan
    for exchanged in _exchanges(len(active), draws):
        a, b = (metric.estimator.drawn(SwappedDraw(view, pair, side, active, exchanged)) for side in (0, 1))
        apart = np.abs(a - b)
        if count == 0:
            observed = apart[0] - TIE * max(abs(a[0]), abs(b[0]))
            if np.isnan(observed):
                return None
        extreme += int((~(apart < observed)).sum())  # an undefined difference counts as one as extreme
        count += len(apart)
    return extreme / count


def _active(metric: Metric, view: View, pair: Pair) -> Integers:
    """Find the units whose exchange changes anything; with labels, which sums do not tell apart, all units."""
    if metric.estimator.labels:
        return np.arange(pair.size)
    differs: NDArray[np.bool_] = np.zeros(pair.size, dtype=np.bool_)
    for role in view.column_of:
        sums = view.sums(role)
        differs |= pair.of_side(0, sums) != pair.of_side(1, sums)
    return np.flatnonzero(differs)


def _exchanges(units: int, draws: int) -> Iterator[Array]:
    """Yield all exchanges of few units, or random ones; the first exchanges nothing."""
    if units <= EXACT_UNITS:
        numbers = np.arange(2**units)[:, None]
        yield ((numbers >> np.arange(units)) & 1).astype(np.float64)
        return
    random = np.random.default_rng(SEED)
    yield np.zeros((1, units))
    step = max(1, AT_ONCE // units)
    for first in range(0, draws, step):
        yield random.integers(0, 2, (min(step, draws - first), units)).astype(np.float64)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
