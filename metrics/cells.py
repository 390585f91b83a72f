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
from metrics.composite import Composite
from metrics.intervals import Array, Integers, percentile

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
    """How many rows of each cell one group has, ascending; of each cluster and cell where there are clusters."""

    cell: Integers
    count: Integers
    cluster: Integers | None

    def units(self, cells: Cells, composite: Composite, rng: np.random.Generator) -> Units:
        level = cells.level[self.cell]
        if composite.bins is not None:
            level = self._binned(level, cells.levels, composite)
        label = _numbered(level)
        if self.cluster is not None:
            stratum, vector = cells.stratum[self.cell], cells.vector[self.cell]
            return bootstrap.clusters(self.cluster, self.count, stratum, label, vector, rng)
        contributions = bootstrap.Contributions(cells.vector, cells.stratum, cells.kind, cells.varying)
        return bootstrap.cells(self.cell, self.count, label, contributions)

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


def group_cells(groups: pl.Series, cells: Cells, cluster: Integers | None) -> Iterator[tuple[int, GroupCells]]:
    """The number and the cells of every group; `groups` numbers each row's group, null for none."""
    number = (groups.cast(pl.Int64) + 1).fill_null(0).shrink_dtype().to_numpy()[cells.rows]  # narrow types sort best
    last = int(number.max()) - 1
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=last + 2))
    ordered = cells.cell[order]
    clusters = None if cluster is None else cluster[cells.rows][order]
    for group in range(last + 1):
        rows = slice(int(ends[group]), int(ends[group + 1]))
        if clusters is None:
            own = ordered[rows]
            starts = np.concatenate([[0], np.flatnonzero(own[1:] != own[:-1]) + 1])
            yield group, GroupCells(own[starts], np.diff(starts, append=len(own)), None)
        else:
            pairs, count = np.unique(np.stack([ordered[rows], clusters[rows]], axis=1), axis=0, return_counts=True)
            yield group, GroupCells(pairs[:, 0], count, pairs[:, 1])


Numbers = tuple[float, float, float, float, float]
"""value, n, se, ci_low, ci_high; NaN where undefined"""


def estimate_group(
    family: Sequence[Composite], cells: Cells, group: GroupCells, draws: int, rng: np.random.Generator
) -> list[Numbers]:
    """Each composite of a family in one group, all from the same draws; n is 0 where the value is undefined."""
    units = group.units(cells, family[0], rng)
    actual = bootstrap.actual_sums(units)
    values = [float(composite.evaluate(composite.function, actual)[0]) for composite in family]
    total = float(actual[0, :, -1].sum())
    n = [
        0.0 if np.isnan(value) and not composite.explains_variation else total
        for composite, value in zip(family, values, strict=True)
    ]
    if total < 2 or np.isnan(values).all() or len(units.count) > bootstrap.MOST_PARTS:
        return [(value, size, np.nan, np.nan, np.nan) for value, size in zip(values, n, strict=True)]
    drawn: list[list[Array]] = [[] for _ in family]
    for sums in bootstrap.drawn_sums(units, draws, rng):
        for composite, results in zip(family, drawn, strict=True):
            results.append(composite.evaluate(composite.function, sums))
    estimates: list[Numbers] = []
    for composite, value, size, results in zip(family, values, n, drawn, strict=True):
        se, low, high = percentile(np.concatenate(results))
        if composite.standard_error is not None:
            se = float(composite.evaluate(composite.standard_error, actual)[0])
        estimates.append((value, size, *((np.nan,) * 3 if np.isnan(value) else (se, low, high))))
    return estimates
