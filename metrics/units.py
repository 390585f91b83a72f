"""The units that estimates rest on: rows added up by cluster, for every group of a slice at once.

A unit is what hangs together in one group: all rows of one cluster. Repeats of a sample, other prompts, twins add rows
to a unit, and never units. All uncertainty is taken from how units differ (`linearised`), in one pass over them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metrics.columns import Columns, added_up, numbered
from metrics.intervals import ROUNDING, Array, Integers

KEPT_SUMS = 12
"""Columns whose sums by unit are kept at a time, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of every group of a slice, in order of group, then cluster.

    Attributes:
        group: [rows] the group of each row; `groups` for none.
        groups: How many groups there are.
        of_row: [rows] the unit of each row; rows in no group have units behind all others.
        group_of: [units] the group of each unit.
    """

    group: Integers
    groups: int
    of_row: Integers
    group_of: Integers

    @classmethod
    def of(cls, group: Integers, groups: int, cluster: Integers) -> "Units":
        """Number the units of groups from each row's group (`groups`: in none) and cluster."""
        clusters = int(cluster.max(initial=0)) + 1
        of_row, keys = numbered(group * clusters + cluster, (groups + 1) * clusters)
        group_of = keys // clusters
        return cls(group, groups, of_row, group_of[: np.searchsorted(group_of, groups)])

    def total(self, values: Array) -> Array:
        """Add up what each unit has, [units], by group."""
        return added_up(self.group_of, values, self.groups)

    def most(self, values: Array) -> Array:
        """Find the largest of what each unit has, [units], by group; 0 at least."""
        most = np.zeros(self.groups)
        np.maximum.at(most, self.group_of, values)
        return most

    def apart(self, label: Integers) -> tuple["Units", Integers, Integers]:
        """Split every group by its rows' labels, 0 for rows to leave out.

        Returns:
            The finer units, and of each finer group and each finer unit, the group and the unit it is a part of.
        """
        labels = int(label.max(initial=0)) + 1
        inside = (self.group < self.groups) & (label > 0)
        none = self.groups * labels
        key, pairs = numbered(np.where(inside, self.group * labels + label, none), none + 1)
        finer_groups = int(np.searchsorted(pairs, none))
        units = len(self.group_of) + 1
        own = np.minimum(self.of_row, units - 1)
        of_row, keys = numbered(key * units + own, len(pairs) * units)
        group_of = keys // units
        last = int(np.searchsorted(group_of, finer_groups))
        finer = Units(key, finer_groups, of_row, group_of[:last])
        return finer, pairs[:finer_groups] // labels, keys[:last] % units


@dataclass(frozen=True, eq=False)
class View:
    """A metric's inputs in one slice: sums by unit and by group, under the names that the metric gives its inputs."""

    columns: Columns
    units: Units
    column_of: Mapping[str, str]
    prefix: str = ""
    _kept: dict[tuple[str, str], Array] = field(default_factory=dict)

    def part(self, name: str) -> "View":
        """Narrow the view to the inputs of one part of a composite."""
        return replace(self, prefix=f"{self.prefix}{name} ")

    def apart(self, label: Integers) -> tuple["View", Integers, Integers]:
        """Split groups as `Units.apart` does."""
        finer, group, unit = self.units.apart(label)
        return replace(self, units=finer, _kept={}), group, unit

    def named(self, role: str) -> str:
        """Return the column of an input."""
        return self.column_of[self.prefix + role]

    def sums(self, role: str) -> Array:
        """Add up an input by unit, [units]."""
        return self._by_unit(self.named(role), "sums")

    def rows(self, role: str) -> Array:
        """Count by unit the rows in which an input is neither 0 nor null, [units]."""
        return self._by_unit(self.named(role), "occurrences")

    def totals(self, role: str) -> Array:
        """Add up an input by group, [groups]."""
        return self.columns.sums(self.named(role), self.units.group, self.units.groups + 1)[:-1]

    def largest(self, role: str) -> Array:
        """Find the largest value of an input by group, [groups]; minus infinity where none is known."""
        rows = self.columns.known(self.named(role))
        largest = np.full(self.units.groups + 1, -np.inf)
        np.maximum.at(largest, self.units.group[rows], self.values(role)[rows])
        return largest[:-1]

    def values(self, role: str) -> Array:
        """Return an input row by row, 0 for null."""
        return self.columns.values(self.named(role))

    def of_rows(self, by_group: Array) -> Array:
        """Give each row what its group has; 0 where it has none."""
        return np.append(by_group, 0.0)[self.units.group]

    def total_of_rows(self, by_row: Array) -> Array:
        """Add up what each row has, by group."""
        return added_up(self.units.group, by_row, self.units.groups + 1)[:-1]

    def units_of_rows(self, by_row: Array) -> Array:
        """Add up what each row has, by unit."""
        units = len(self.units.group_of)
        return added_up(self.units.of_row, by_row, int(self.units.of_row.max(initial=-1)) + 1)[:units]

    def _by_unit(self, column: str, kind: str) -> Array:
        key = column, kind
        if key not in self._kept:
            if len(self._kept) >= KEPT_SUMS:
                self._kept.clear()
            size = int(self.units.of_row.max(initial=-1)) + 1
            summed = getattr(self.columns, kind)(column, self.units.of_row, size)
            self._kept[key] = np.asarray(summed[: len(self.units.group_of)])
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class Linearised:
    """A ratio of sums in every group, and what each unit adds to its error.

    Attributes:
        units: View of units it is in.
        numerator: [units] its sums, as are `denominator`.
        rows: [units] the rows that count.
        value: [groups] the ratio.
        denominators: [groups] sums of the denominator.
        count: [groups] the units that count.
        influence: [units] each unit's part of the error: the sum of squares is the variance.
    """

    units: Units
    numerator: Array
    denominator: Array
    rows: Array
    value: Array
    denominators: Array
    count: Array
    influence: Array

    @cached_property
    def variance(self) -> Array:
        """The squared standard error between units, [groups]; NaN below 2 units."""
        variance = self.units.total(self.influence**2)
        variance = np.where(variance > (ROUNDING * self.value) ** 2, variance, 0.0)
        return np.where(self.count >= 2, variance, np.nan)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Whether no unit of a group has more than one row that counts, [groups]."""
        return np.asarray(self.units.total((self.rows > 1).astype(np.float64)) == 0)

    @cached_property
    def unit_size(self) -> Array:
        """The denominator of a unit, in the mean that weighs units by it, [groups]."""
        with np.errstate(all="ignore"):
            return np.asarray(self.units.total(self.denominator**2) / self.denominators)


def linearised(view: View, numerator: Array, denominator: Array, rows: Array, value: Array, whole: Array) -> Linearised:
    """Take the ratio `value` of sums by unit, whose denominator sums up to `whole`, apart into what units add to it."""
    units = view.units
    counts = denominator != 0
    count = units.total(counts.astype(np.float64))
    with np.errstate(all="ignore"):
        scale = np.where(count >= 2, np.sqrt(count / (count - 1)) / whole, 0.0)
        influence = (numerator - value[units.group_of] * denominator) * scale[units.group_of]
    influence = np.where(np.isfinite(influence), influence, 0.0)
    return Linearised(units, numerator, denominator, rows, value, whole, count, influence)
