"""The bootstrap over clusters: samples that hang together are resampled together, at a cost of rows plus draws.

One slice at a time, all composites and groups of it: rows are added up once per unit (`metrics.units`), and resampling
is a matrix product of how often each unit is drawn with what each contributes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.errors import MetricError
from metrics.columns import Columns
from metrics.composite import Composite, Sums, has_interval, intervals, values
from metrics.intervals import Array, Integers
from metrics.units import Draws, Generator, Units, numbered

ENTRIES_AT_ONCE = 4_000_000
MOST_LABELS = 5000
"""With more labels in a group there is no interval, which bounds the time that data can cost."""


@dataclass(frozen=True, eq=False)
class Family:
    """Composites by number that differ in their functions alone, and the column of each of their inputs."""

    name: str  # of the first, for errors
    members: Mapping[int, Composite]
    column: Mapping[str, str]

    @property
    def one(self) -> Composite:
        """The first: what they share is to be asked of it."""
        return next(iter(self.members.values()))


@dataclass(frozen=True, eq=False)
class _Slice:
    """The group of each row (`groups`: in none), and the units of each group."""

    group: Integers
    groups: int
    units: Units


@dataclass(frozen=True, eq=False)
class _Parts:
    """The labels that occur in each unit, and in each group: parts, in order of unit or group, then label."""

    columns: Columns
    unit_part: Integers  # [rows]
    unit: Integers  # [unit parts]
    label: Integers  # [unit parts]
    group_part: Integers  # [rows]
    group: Integers  # [group parts]
    known: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, where: _Slice, label: Integers, columns: Columns) -> "_Parts":
        labels = int(label.max()) + 1
        unit_part, units = numbered(where.units.of_row * labels + label, len(where.units.stratum) * labels)
        group_part, groups = numbered(where.group * labels + label, (where.groups + 1) * labels)
        return cls(columns, unit_part, units // labels, units % labels, group_part, groups // labels)

    def sums(self, column: str) -> tuple[Array, Array]:
        """The column's sums in the parts of units, and in those of groups."""
        if column not in self.known:
            of_units = self.columns.sums(column, self.unit_part, len(self.unit))
            self.known[column] = of_units, self.columns.sums(column, self.group_part, len(self.group))
        return self.known[column]

    def actual(self, column: str, group: int) -> Array:
        """The column's sums in a group as they are, [1, labels]."""
        parts = slice(*np.searchsorted(self.group, [group, group + 1]).tolist())
        return self.sums(column)[1][None, parts]

    def contributed(self, column: str, units: slice) -> Array:
        """What each of a group's units contributes to the column's sums, [units, labels that occur in any of them]."""
        parts = slice(*np.searchsorted(self.unit, [units.start, units.stop]).tolist())
        labels, place = np.unique(self.label[parts], return_inverse=True)
        table = np.zeros((units.stop - units.start, len(labels)))
        table[self.unit[parts] - units.start, place] = self.sums(column)[0][parts]
        return table


_Sum = tuple[_Parts, str]
"""A column, added up in parts."""


@dataclass(frozen=True, eq=False)
class _Summed:
    """A family in a slice: its sums by name, and its n."""

    family: Family
    sums: Mapping[str, _Sum]
    n: _Sum

    def actual(self, group: int) -> tuple[Sums, Array]:
        """A group's sums as they are, and the composites' values and n."""
        sums = self._named({key: key[0].actual(key[1], group) for key in self.sums.values()})
        parts, column = self.n
        total = float(parts.actual(column, group)[0, 0])
        try:
            return sums, values(list(self.family.members.values()), sums, total)
        except MetricError as error:
            raise MetricError(f"Metric {self.family.name}: {error}.") from error

    def labels(self, sums: Sums) -> int:
        """How many labels they are told apart by, at most."""
        return max(int(known[0].size) for known in sums.values())

    def evaluate(self, drawn: Mapping[_Sum, Array]) -> Array:
        """The composites' values in each draw, [composites, draws]."""
        sums = self._named(drawn)
        return np.stack([composite.evaluate(composite.function, sums) for composite in self.family.members.values()])

    def _named(self, known: Mapping[_Sum, Array]) -> Sums:
        labelled = self.family.one.by is not None
        return {name: known[key] if labelled else known[key][:, 0] for name, key in self.sums.items()}


def estimate_slice(
    families: Sequence[Family],
    columns: Columns,
    group: Integers,
    groups: int,
    cluster: Integers,
    dealt: Generator,
    draws: Draws,
) -> dict[int, Array]:
    """Of each composite, by number, value, n, se, ci_low and ci_high in every group, [groups, 5].

    group, cluster  [rows]  each row's group, `groups` for none, and its cluster
    dealt           of a group's number: the random numbers by which its clusters are dealt, if they are too many
    """
    estimated = {i: np.full((groups, 5), np.nan) for family in families for i in family.members}
    for strata in {family.column.get("strata"): None for family in families}:
        where = _Slice(group, groups, Units.deal(group, groups, cluster, columns.ranks(strata), dealt))
        summed = _add_up([family for family in families if family.column.get("strata") == strata], columns, where)
        for each in range(groups):
            _estimate_group(summed, where.units, each, draws, estimated)
    return estimated


def _add_up(families: Sequence[Family], columns: Columns, where: _Slice) -> list[_Summed]:
    """The families in a slice; those with the same labels share their parts."""
    whole = _Parts.of(where, columns.ranks(None), columns)
    labelled: dict[object, _Parts] = {}
    summed = []
    for family in families:
        apart = whole
        if family.one.by is not None:
            key = family.column["by"], family.one.bins
            apart = labelled.get(key) or _Parts.of(where, _labels(family, columns, where), columns)
            labelled[key] = apart
        parts = {name: apart if family.one.told_apart(name) else whole for name in family.one.sums}
        sums = {name: (parts[name], family.column[f"sum {name}"]) for name in parts}
        summed.append(_Summed(family, sums, (whole, family.column["n"])))
    return summed


def _estimate_group(
    summed: Sequence[_Summed], units: Units, group: int, draws: Draws, estimated: Mapping[int, Array]
) -> None:
    """Fill in one group's numbers: all composites from the same draws, in which each sum is drawn once."""
    wanted: list[tuple[_Summed, Sums, Array]] = []
    for each in summed:
        sums, known = each.actual(group)
        for i, numbers in zip(each.family.members, known, strict=True):
            estimated[i][group, :2] = numbers
        if has_interval(known) and each.labels(sums) <= MOST_LABELS:
            wanted.append((each, sums, known))
    if not wanted:
        return
    own = units.of_group(group)
    keys = dict.fromkeys(key for each, _, _ in wanted for key in each.sums.values())
    tables = {key: key[0].contributed(key[1], own) for key in keys}
    blocks = [
        np.concatenate([each.evaluate(drawn) for each, _, _ in wanted])
        for drawn in _drawn(tables, draws.of(units.stratum[own]))
    ]
    members = [(i, composite, sums) for each, sums, _ in wanted for i, composite in each.family.members.items()]
    composites, actual = [composite for _, composite, _ in members], [sums for _, _, sums in members]
    known = np.concatenate([known for _, _, known in wanted])
    spread = intervals(composites, actual, known, np.concatenate(blocks, axis=1))
    for (i, _, _), row in zip(members, spread, strict=True):
        estimated[i][group, 2:] = row


def _drawn(tables: Mapping[_Sum, Array], times: Array) -> Iterator[Mapping[_Sum, Array]]:
    """The sums [draws, labels] of each table [units, labels], in blocks of draws that bound the memory."""
    contributed = np.concatenate(list(tables.values()), axis=1)
    ends = np.cumsum([table.shape[1] for table in tables.values()])[:-1]
    block = max(1, ENTRIES_AT_ONCE // contributed.shape[1])
    for begin in range(0, len(times), block):
        drawn = times[begin : begin + block] @ contributed
        yield dict(zip(tables, np.split(drawn, ends, axis=1), strict=True))


def _labels(family: Family, columns: Columns, where: _Slice) -> Integers:
    """The label of each row, in its group: what it is `by`, or the bin of that."""
    one, by = family.one, family.column["by"]
    level = columns.ranks(by)
    if one.bins is None:
        return level
    values = columns.distinct(by)
    levels = len(values) + 1
    of_row, pairs = numbered(where.group * levels + level, (where.groups + 1) * levels)
    rows = np.bincount(of_row).astype(np.float64)
    starts = np.searchsorted(pairs, np.arange(where.groups + 1) * levels + 1)  # without level 0, which has no value
    ends = np.searchsorted(pairs, np.arange(1, where.groups + 2) * levels)
    label = np.zeros(len(pairs), dtype=np.int64)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < end:
            label[start:end] = 1 + one.bins(values[pairs[start:end] % levels - 1], rows[start:end])
    return label[of_row]
