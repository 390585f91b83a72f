"""Slices: the groups of rows with one value of a column, and their units, many slices at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from metrics.columns import Columns, begins, numbered, ordered
from metrics.intervals import Integers
from metrics.units import Pool, Share, Units


@dataclass(frozen=True, eq=False)
class Slicing:
    """The groups of one slice: `keys` has a row per group; `group` numbers each sample's (none: how many groups)."""

    name: str
    keys: pl.DataFrame
    group: Integers

    @classmethod
    def of(cls, columns: Columns, name: str, groups: Sequence[str]) -> "Slicing":
        """Assign numbers to the groups of a slice in the order of their keys."""
        sliced = None if name == "all" else f"column {name}"
        code = columns.ranks(sliced)
        none = int(code.max()) + 1
        if sliced is not None:
            code = np.where(code == 0, none, code)  # rows without a value have the last numbers
        known = code < none
        for group in groups:
            rank = columns.ranks(f"column {group}")
            width = int(rank.max()) + 1
            code = numbered(code * width + rank, (int(code.max()) + 1) * width)[0]
        count = int(code[known].max(initial=-1)) + 1
        first = np.empty(int(code.max()) + 1, dtype=np.int64)
        first[code[::-1]] = np.arange(columns.rows)[::-1]
        value = pl.lit("") if sliced is None else pl.col(sliced).cast(pl.String)
        own = [pl.col(f"column {group}").alias(group) for group in groups]
        keys = columns.frame[first[:count]].select(*own, slice_value=value)
        return cls(name, keys, np.minimum(code, count))


def units_of(slicings: Sequence[Slicing], group: Integers, cluster: Integers) -> Units:
    """Assign numbers to the units of the groups of several slices, one slice after the other.

    Args:
        slicings: The slices.
        group: [rows] the group of each row, whatever the slice, in ascending order.
        cluster: [rows] the cluster of each row, in ascending order within each group.
    """
    rows, of_group, before = [], [], 0
    for slicing in slicings:
        count = slicing.keys.height
        own = ordered(slicing.group)[: np.count_nonzero(slicing.group < count)]
        rows.append(own)
        of_group.append(slicing.group[own] + before)
        before += count
    every = np.concatenate(rows)
    units = Units.in_order(every, np.concatenate(of_group), before, cluster[every])
    return replace(units, shares=tuple(_shares(units, rows, np.cumsum(begins(group, cluster)) - 1)))


def _shares(units: Units, rows: Sequence[Integers], whole: Integers) -> Iterator[Share]:
    """Yield the pool of each slice's sums by unit: slices of the same rows that split no unit have the same one."""
    first = 0
    pools: dict[bytes, Pool] = {}
    for own in rows:
        of_row = units.of_row[first : first + len(own)]
        first += len(own)
        before = int(of_row[0])
        first_rows = np.flatnonzero(begins(of_row))
        inside = np.zeros(len(whole), dtype=np.bool_)
        inside[own] = True
        number, distinct = numbered(whole[inside], int(whole[-1]) + 1)
        if len(distinct) < len(first_rows):
            yield Share(Pool(own, of_row - before, len(first_rows)), None)
            continue
        pool = pools.setdefault(
            inside.tobytes(), Pool(None if inside.all() else np.flatnonzero(inside), number, len(distinct))
        )
        yield Share(pool, np.searchsorted(distinct, whole[own[first_rows]]))
