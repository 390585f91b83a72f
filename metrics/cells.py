"""Cells: rows that contribute alike to a composite metric, found once in a frame and counted in every group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contracts.errors import MetricError
from metrics import bootstrap
from metrics.bootstrap import Units
from metrics.composite import Composite, Sums, has_interval, intervals, values
from metrics.intervals import Array, Integers

MOST_SUMS = 60
LABELS = ("by", "strata")


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct contributions of a frame's rows, ordered by label and then by nothing but their values.

    rows, cell      the frame's rows in order of their cells, and the cell of each of them
    vector          [cells, sums]  the contributions; the last column is the denominator's
    level, stratum  [cells]  which of `levels` its label is (0: none), and its stratum
    levels          the values of `by`, ascending
    kind            [cells]  numbered from 0; cells of one kind differ in label and in the sums `varying` only
    """

    rows: Integers
    cell: Integers
    vector: Array
    level: Integers
    levels: pl.Series
    stratum: Integers
    kind: Integers
    varying: tuple[int, ...]


def rank_inputs(frame: pl.DataFrame, composites: Iterable[Mapping[str, str]]) -> pl.DataFrame:
    """The distinct values of the composites' inputs as ranks from 1, 0 for null: one sort of a column serves them all.

    In the narrowest type, which sorts fastest. Conditions need none, but where they are labels.
    """
    used = {c for column in composites for role, c in column.items() if role in LABELS or frame.schema[c] != pl.Boolean}
    ranks = frame.select(pl.col(sorted(used)).rank("dense").fill_null(0))
    return pl.DataFrame([series.shrink_dtype() for series in ranks])


def find_cells(frame: pl.DataFrame, ranks: pl.DataFrame, composite: Composite, column: Mapping[str, str]) -> Cells:
    """The cells of `composite`, whose inputs are the columns of `frame`, and of their `ranks`, that `column` names."""
    sums = [column[f"sum {name}"] for name in composite.sums] + [column["n"]]
    if len(sums) > MOST_SUMS:
        raise MetricError(f"a composite has at most {MOST_SUMS - 1} sums, not {len(sums) - 1}")
    varying = tuple(j for j, c in enumerate(sums) if frame.schema[c] != pl.Boolean)
    bits = [c for j, c in enumerate(sums) if j not in varying]
    conditions = np.zeros(frame.height, dtype=np.int64)
    for bit, c in enumerate(bits):
        conditions += frame[c].fill_null(False).to_numpy().astype(np.int64) << bit
    nothing = np.zeros(frame.height, dtype=np.uint16)
    level = ranks[column["by"]].to_numpy() if "by" in column else nothing
    stratum = ranks[column["strata"]].to_numpy() if "strata" in column else nothing

    keys = [level, stratum, conditions, *(ranks[sums[j]].to_numpy() for j in varying)]
    digits = [digit for key in keys for digit in _digits(key)]
    rows = np.lexsort(digits[::-1]) if digits else np.arange(frame.height)
    begins = np.arange(frame.height) == 0
    for key in digits:
        ordered = key[rows]
        begins[1:] |= ordered[1:] != ordered[:-1]
    first = rows[begins]
    examples = frame.select(list(dict.fromkeys(sums)))[first].select(pl.all().cast(pl.Float64).fill_null(0.0))
    return Cells(
        rows=rows,
        cell=np.cumsum(begins) - 1,
        vector=examples.select(pl.col(c).alias(str(j)) for j, c in enumerate(sums)).to_numpy() + 0.0,  # no -0.0
        level=level[first].astype(np.int64),
        levels=frame[column["by"]].unique().drop_nulls().sort() if "by" in column else pl.Series(dtype=pl.Int64),
        stratum=stratum[first].astype(np.int64),
        kind=_numbered(stratum[first].astype(np.int64), conditions[first]),
        varying=varying,
    )


def _numbered(*keys: Integers) -> Integers:
    """Numbers from 0, in order, for the distinct tuples of keys; fast where equal ones mostly follow one another."""
    changes = [np.flatnonzero(key[1:] != key[:-1]) + 1 for key in keys]
    begins = np.unique(np.concatenate([[0], *changes]))
    number = np.unique(np.stack([key[begins] for key in keys]), axis=1, return_inverse=True)[1].ravel()
    return np.repeat(number, np.diff(begins, append=len(keys[0])))


def _digits(key: NDArray[Any]) -> list[NDArray[np.uint16]]:
    """The key's 16-bit digits, most significant first: NumPy sorts those by radix, in linear time."""
    return [(key >> shift).astype(np.uint16) for shift in (48, 32, 16, 0) if int(key.max(initial=0)) >> shift]


@dataclass(frozen=True, eq=False)
class GroupCells:
    """How many rows of each cell one group has, ascending."""

    cell: Integers
    count: Integers

    def units(self, cells: Cells, composite: Composite) -> Units:
        """What the bootstrap resamples: these cells, each with the label it has in this group."""
        level = cells.level[self.cell]
        if composite.bins is not None:
            level = self._binned(level, cells.levels, composite)
        contributions = bootstrap.Contributions(cells.vector, cells.stratum, cells.kind, cells.varying)
        return bootstrap.cells(self.cell, self.count, _numbered(level), contributions)

    def _binned(self, level: Integers, levels: pl.Series, composite: Composite) -> Integers:
        """The bin of each cell, from 1; 0 for cells without a value to bin."""
        assert composite.bins is not None
        index = _numbered(level)
        occurring = np.zeros(int(index.max()) + 1, dtype=np.int64)
        occurring[index] = level
        rows = np.bincount(index, weights=self.count).astype(np.float64)
        labelled = occurring > 0
        bins = np.zeros(len(occurring), dtype=np.int64)
        if labelled.any():
            values = levels.to_numpy().astype(np.float64)[occurring[labelled] - 1]
            bins[labelled] = 1 + composite.bins(values, rows[labelled])
        return bins[index]


def group_cells(group: Integers, groups: int, cells: Cells) -> Iterator[tuple[int, GroupCells]]:
    """The number and the cells of every group; `group` [rows] numbers each row's, `groups` for none."""
    number = group.astype(np.min_scalar_type(groups))[cells.rows]  # narrow types sort best
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=groups))])
    ordered = cells.cell[order]
    for each in range(groups):
        own = ordered[int(starts[each]) : int(starts[each + 1])]
        begins = np.concatenate([[0], np.flatnonzero(own[1:] != own[:-1]) + 1])
        yield each, GroupCells(own[begins], np.diff(begins, append=len(own)))


def estimate_group(
    family: Sequence[Composite], cells: Cells, group: GroupCells, draws: int, rng: np.random.Generator
) -> Array:
    """Value, n, se, ci_low and ci_high of each composite of a family in one group, all from the same draws."""
    units = group.units(cells, family[0])
    sums = bootstrap.actual_sums(units)
    actual = _named(family[0], sums)
    known = values(family, actual, float(sums[0, :, -1].sum()))
    spread = np.full((len(family), 3), np.nan)
    if has_interval(known) and len(units.count) <= bootstrap.MOST_PARTS:
        blocks = (_named(family[0], drawn) for drawn in bootstrap.drawn_sums(units, draws, rng))
        drawn = [[c.evaluate(c.function, block) for c in family] for block in blocks]
        spread = intervals(family, [actual] * len(family), known, np.concatenate(drawn, axis=1))
    return np.concatenate([known, spread], axis=1)


def _named(one: Composite, sums: Array) -> Sums:
    """Sums [draws, labels, sums], in the order of the composite's, by name."""
    if one.by is None:
        return {name: sums[:, 0, j] for j, name in enumerate(one.sums)}
    apart = {name: sums[:, :, j] for j, name in enumerate(one.sums)}
    return {name: s if one.told_apart(name) else s.sum(axis=1, keepdims=True) for name, s in apart.items()}
