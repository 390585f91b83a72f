"""The units that estimates rest on: rows added up by cluster, for every group of some slices at once.

A unit is what hangs together in one group: all rows of one cluster. Repeats of a sample, other prompts, twins add rows
to a unit, and never units. All uncertainty is taken from how units differ (`Linearised`). Rows and units stand in
order of group, then cluster, so that what is of one group is added up at a stretch.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from evalake.metrics.columns import INDEX, Columns, added_up, begins, ordered, share_within
from evalake.metrics.intervals import ROUNDING, Array, Integers

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that are added up by unit: which (None: all, as they stand), the unit of each, and how many units."""

    rows: Integers | None
    of_row: Integers
    count: int

    def add_up(self, values: Array) -> Array:
        """Add up a column, [rows], by unit."""
        return added_up(self.of_row, values if self.rows is None else values[self.rows], self.count)


@dataclass(frozen=True, eq=False)
class Share:
    """Units that are some of a pool, in another order, or all of it."""

    pool: Pool
    chosen: Integers | None


@dataclass(frozen=True, eq=False)
class Units:
    """The units of every group, in order of group, then cluster.

    Attributes:
        groups: The number of groups; each has a row.
        rows: [its rows] which rows of the columns are in a group, in order of unit; one may be in several groups.
        of_row: [its rows] the unit of each row.
        group_of: [units] the group of each unit.
        shares: Where the units of slices are picked from, one slice after the other, if slices have some in common.
        strata: [rows] the stratum that each row's cluster was drawn from; None where nothing was drawn by strata.
    """

    groups: int
    rows: Integers
    of_row: Integers
    group_of: Integers
    shares: Sequence[Share] = ()
    strata: Integers | None = None

    @classmethod
    def of(cls, group: Integers, groups: int, cluster: Integers) -> "Units":
        """Assign numbers to the units of groups from each row's group (`groups`: in none) and cluster."""
        rows = np.lexsort((cluster, group))
        rows = rows[: np.searchsorted(group[rows], groups)]
        return cls.in_order(rows, group[rows], groups, cluster[rows])

    @classmethod
    def in_order(cls, rows: Integers, group: Integers, groups: int, cluster: Integers) -> "Units":
        """Assign numbers to the units of rows that stand in order of group, then cluster."""
        first = begins(group, cluster)
        return cls(groups, rows, np.cumsum(first, dtype=INDEX) - 1, group[first])

    @cached_property
    def count(self) -> int:
        """How many units there are."""
        return len(self.group_of)

    @cached_property
    def row_group(self) -> Integers:
        """The group of each of its rows."""
        return self.group_of[self.of_row].astype(np.int64)

    @cached_property
    def _starts(self) -> Integers:
        return np.searchsorted(self.group_of, np.arange(self.groups))

    @cached_property
    def _sizes(self) -> Integers:
        return np.bincount(self.group_of, minlength=self.groups)

    @cached_property
    def _row_starts(self) -> Integers:
        return np.searchsorted(self.of_row, self._starts)

    def total(self, values: Array) -> Array:
        """Add up what each unit has, [units], by group."""
        return np.add.reduceat(values, self._starts) if self.count else np.zeros(self.groups)

    def most(self, values: Array) -> Array:
        """Find the largest of what each unit has, [units], by group; 0 at least."""
        return np.maximum(np.maximum.reduceat(values, self._starts), 0.0) if self.count else np.zeros(self.groups)

    def spread(self, by_group: Array) -> Array:
        """Repeat the value of each group, [groups], for each of its units, [units]."""
        return np.repeat(by_group, self._sizes)

    def total_of_rows(self, by_row: Array) -> Array:
        """Add up what each of its rows has, by group."""
        return np.add.reduceat(by_row, self._row_starts) if self.count else np.zeros(self.groups)

    def largest_of_rows(self, by_row: Array) -> Array:
        """Find the largest of what each of its rows has, by group."""
        return np.maximum.reduceat(by_row, self._row_starts) if self.count else np.full(self.groups, -np.inf)

    def by_unit(self, by_row: Array) -> Array:
        """Add up what each of its rows has, by unit."""
        return by_row if self.count == len(by_row) else added_up(self.of_row, by_row, self.count)

    @cached_property
    def alike(self) -> Array:
        """The number of units with equally many rows that tell as much as these do, [groups] (Kish 1965)."""
        rows = self.by_unit(np.ones(len(self.of_row)))
        return self.total(rows) ** 2 / self.total(rows**2)

    @cached_property
    def stratum_of(self) -> Integers | None:
        """The stratum of each unit; None where there are none."""
        return None if self.strata is None else self.strata[self.rows[begins(self.of_row)]]

    def stratified(self, added: Array, counts: NDArray[np.bool_] | None = None) -> Array:
        """Compute by how much strata lessen the variance of what units add up to, [groups]; see `share_within`.

        `counts` tells which units are behind the sum.
        """
        if self.stratum_of is None or not self.count:
            return np.ones(self.groups)
        ours = np.ones(self.count, dtype=np.bool_) if counts is None else counts
        return share_within(added[ours], self.stratum_of[ours], self.group_of[ours], self.groups)

    def add_up(self, values: Array) -> Array:
        """Add up a column, [rows], by unit."""
        if not self.shares:
            return self.by_unit(values[self.rows])
        sums = {pool: pool.add_up(values) for pool in {share.pool for share in self.shares}}
        picked = (sums[each.pool] if each.chosen is None else sums[each.pool][each.chosen] for each in self.shares)
        return np.concatenate([*picked])

    def apart(self, label: Integers) -> tuple["Units", Integers, Integers]:
        """Split every group by the labels of its rows, 0 for rows to leave out.

        Returns:
            The finer units, and of each finer group and each finer unit, the group and the unit it is a part of.
        """
        labels = int(label.max(initial=0)) + 1
        key = np.where(label > 0, self.row_group * labels + label, self.groups * labels)
        order = ordered(key)[: np.count_nonzero(label)]
        key = key[order]
        first = begins(key)
        finer = Units.in_order(self.rows[order], np.cumsum(first) - 1, int(first.sum()), self.of_row[order])
        finer = replace(finer, strata=self.strata)
        unit = np.empty(finer.count, dtype=np.int64)
        unit[finer.of_row] = self.of_row[order]
        return finer, key[first] // labels, unit


@dataclass(frozen=True, eq=False)
class Denominator:
    """The denominator of a ratio of sums.

    Attributes:
        units: The units it is added up by.
        sums: [units] their sums.
        rows: [units] the rows of each that count.
    """

    units: Units
    sums: Array
    rows: Array

    @cached_property
    def total(self) -> Array:
        """The sum, [groups]."""
        return self.units.total(self.sums)

    @cached_property
    def count(self) -> Array:
        """The units that count, [groups]."""
        return self.units.total((self.sums != 0).astype(np.float64))

    @cached_property
    def squares(self) -> Array:
        """The sum of the units' squared sums, [groups]."""
        return self.units.total(self.sums**2)

    @cached_property
    def row_total(self) -> Array:
        """The rows that count, [groups]."""
        return self.total if self.rows is self.sums else self.units.total(self.rows)

    @cached_property
    def row_squares(self) -> Array:
        """The sum of the units' squared numbers of rows, [groups]."""
        return self.squares if self.rows is self.sums else self.units.total(self.rows**2)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Whether no unit of a group has more than one row that counts, [groups]."""
        return np.asarray(self.units.most(self.rows) <= 1)

    @cached_property
    def one_each(self) -> NDArray[np.bool_]:
        """Whether no unit of a group has a sum above 1, [groups]."""
        return np.asarray(self.units.most(self.sums) <= 1)

    @cached_property
    def effective(self) -> Array:
        """The number of equal units that tell as much as these do with their unequal rows, [groups] (Kish 1965)."""
        with np.errstate(all="ignore"):
            alike = self.row_total**2 / self.row_squares
        return np.where(self.count > 0, np.maximum(np.minimum(alike, self.count), np.minimum(self.count, 2)), 0.0)

    @cached_property
    def unit_size(self) -> Array:
        """The mean sum of a unit, weighted by that sum, [groups]."""
        with np.errstate(all="ignore"):
            return np.asarray(self.squares / self.total)


@dataclass(frozen=True, eq=False)
class Linearised:
    """A ratio of sums in every group, and what each unit adds to its error.

    Attributes:
        numerator: [units] its sums.
        below: Its denominator.
    """

    numerator: Array
    below: Denominator

    @property
    def units(self) -> Units:
        """The units it is added up by."""
        return self.below.units

    @cached_property
    def total(self) -> Array:
        """The sum of the numerator, [groups]."""
        return self.units.total(self.numerator)

    @cached_property
    def value(self) -> Array:
        """The ratio, [groups]; NaN where the denominator is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.below.total != 0, self.total / self.below.total, np.nan)

    @property
    def count(self) -> Array:
        """The units that count, [groups]."""
        return self.below.count

    @property
    def single(self) -> NDArray[np.bool_]:
        """Whether no unit of a group has more than one row that counts, [groups]."""
        return self.below.single

    @property
    def _residual(self) -> Array:
        return np.asarray(self.numerator - self.units.spread(np.nan_to_num(self.value)) * self.below.sums)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """The sum of the residuals' squares, and of their products with the denominator, [groups]."""
        residual = self._residual
        across = self.units.total(residual * self.below.sums)
        return self.units.total(np.square(residual, out=residual)), across

    def squares(self, value: Array) -> Array:
        """Add up the squared residuals of another ratio than its own, [groups]."""
        squares, across = self._moments
        apart = self.value - value
        return np.asarray(squares + apart * (2 * across + apart * self.below.squares))

    @property
    def effective(self) -> Array:
        """The number of equal units that tell as much, [groups]."""
        return self.below.effective

    @cached_property
    def stratified(self) -> Array:
        """The share of the variance that strata leave, [groups]."""
        return self.units.stratified(self._residual, self.below.sums != 0)

    @cached_property
    def _scale(self) -> Array:
        with np.errstate(all="ignore"):
            scale = np.sqrt(self.count / (self.count - 1)) / self.below.total
        return np.where((self.count >= 2) & np.isfinite(scale) & np.isfinite(self.value), scale, 0.0)

    @cached_property
    def influence(self) -> Array:
        """Each unit's part of the error, [units]: the sum of squares is the variance, but for strata."""
        return np.asarray(self._residual * self.units.spread(self._scale))

    @cached_property
    def variance(self) -> Array:
        """The squared standard error between units, [groups]; NaN below 2 units."""
        variance = self._moments[0] * self._scale**2 * self.stratified
        variance = np.where(variance > (ROUNDING * self.value) ** 2, variance, 0.0)
        return np.where(self.count >= 2, variance, np.nan)


@dataclass(frozen=True, eq=False)
class View:
    """A metric's inputs in some groups: sums by unit and by group, under the names that the metric gives its inputs.

    What follows from the same columns is computed once for all views that narrow one.
    """

    columns: Columns
    units: Units
    column_of: Mapping[str, str]
    prefix: str = ""
    _kept: dict[Hashable, object] = field(default_factory=dict)

    def part(self, name: str) -> "View":
        """Narrow the view to the inputs of one part of a composite."""
        return replace(self, prefix=f"{self.prefix}{name} ")

    def apart(self, name: Hashable, label: Callable[[], Integers]) -> tuple["View", Integers, Integers]:
        """Split groups as `Units.apart` does, by labels [its rows] that are known by a name."""

        def split() -> tuple[Units, Integers, Integers, dict[Hashable, object]]:
            return *self.units.apart(label()), {}

        units, group, unit, kept = self.once(("apart", name), split)
        return replace(self, units=units, _kept=kept), group, unit

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Look up the value of a key; make it where it has not been made."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])

    def forget(self) -> None:
        """Drop the values that `once` keeps: some refer to the view, a cycle that would stay in memory for a while."""
        self._kept.clear()

    def named(self, role: str) -> str:
        """Look up the column of an input."""
        return self.column_of[self.prefix + role]

    def read(self) -> tuple[str, ...]:
        """List the columns of all inputs."""
        return tuple(column for role, column in self.column_of.items() if role.startswith(self.prefix))

    def sums(self, role: str) -> Array:
        """Add up an input by unit, [units]."""
        return self.once(("sums", self.named(role)), lambda: self.units.add_up(self.columns.values(self.named(role))))

    def rows(self, role: str) -> Array:
        """Count by unit the rows in which an input is neither 0 nor null, [units]."""
        column = self.named(role)
        if self.columns.is_condition(column):
            return self.sums(role)
        counts = self.columns.values(column) != 0
        return self.once(("rows", column), lambda: self.units.add_up(counts.astype(np.float64)))

    def over(self, role: str) -> Denominator:
        """Build the denominator of ratios from an input."""
        return self.once(("over", self.named(role)), lambda: Denominator(self.units, self.sums(role), self.rows(role)))

    def ratio(self, numerator: str, denominator: str) -> Linearised:
        """Build the ratio of two inputs' sums."""
        key = "ratio", self.named(numerator), self.named(denominator)
        return self.once(key, lambda: Linearised(self.sums(numerator), self.over(denominator)))

    def totals(self, role: str) -> Array:
        """Add up an input by group, [groups]."""
        return self.once(("totals", self.named(role)), lambda: self.units.total(self.sums(role)))

    def counting(self, role: str) -> Array:
        """Count by group the units whose sum of an input is not 0, [groups]."""
        return self.over(role).count

    def largest(self, role: str) -> Array:
        """Find the largest value of an input by group, [groups]; minus infinity where none is known."""
        known = self.columns.is_known(self.named(role))[self.units.rows]
        return self.units.largest_of_rows(np.where(known, self.values(role), -np.inf))

    def values(self, role: str) -> Array:
        """Return an input by row of its units, 0 for null."""
        return self.columns.values(self.named(role))[self.units.rows]

    def ranks(self, role: str) -> Integers:
        """Return the ranks of an input's values by row of its units, from 1, 0 for null."""
        return self.columns.ranks(self.named(role))[self.units.rows]
