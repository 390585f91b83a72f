"""Slices: the groups of rows with one value of a column, and their units, many slices at once."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import polars as pl

from evalake.metrics.columns import INDEX, Columns, begins, numbered, ordered, small
from evalake.metrics.intervals import Integers
from evalake.metrics.units import Pool, Share, Units

# How well a grouping agrees with a known one: over pairs, each either together or apart.


@dataclass(frozen=True, slots=True)
class GroupingAgreement:
    """Of the pairs that are together in one grouping, how many are in the other."""

    precision: float | None  # of the pairs put together, those that belong together; None: none was put together
    recall: float | None  # of the pairs that belong together, those put together; None: none belongs together
    adjusted_rand: float | None  # 1: the same grouping, 0: as good as chance; None: chance could do no other


def grouping_agreement(assigned: Sequence[Hashable], known: Sequence[Hashable]) -> GroupingAgreement:
    """Compare the group that each of some things was put into with the one that it belongs to.

    The adjusted Rand index is that of Hubert and Arabie (1985).
    """
    both = _pairs(list(zip(assigned, known, strict=True)))
    put, belonging, pairs = _pairs(assigned), _pairs(known), comb(len(known), 2)
    expected = put * belonging / pairs if pairs else 0.0
    most = (put + belonging) / 2
    return GroupingAgreement(
        precision=both / put if put else None,
        recall=both / belonging if belonging else None,
        adjusted_rand=(both - expected) / (most - expected) if most != expected else None,
    )


def _pairs(groups: Sequence[Hashable]) -> int:
    """Count the pairs that are together in a group."""
    return sum(comb(size, 2) for size in Counter(groups).values())


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
        return cls(name, keys, small(np.minimum(code, count)))


def units_of(slicings: Sequence[Slicing], group: Integers, cluster: Integers) -> Units:
    """Assign numbers to the units of the groups of several slices, one slice after the other.

    Args:
        slicings: The slices.
        group: [rows] the group of each row, for any slice, in ascending order.
        cluster: [rows] the cluster of each row, in ascending order within each group.
    """
    rows, of_group, before = [], [], 0
    for slicing in slicings:
        count = slicing.keys.height
        own = small(ordered(slicing.group)[: np.count_nonzero(slicing.group < count)])
        rows.append(own)
        of_group.append(slicing.group[own].astype(INDEX) + before)
        before += count
    if len(slicings) == 1:
        return Units.in_order(rows[0], of_group[0], before, cluster[rows[0]])
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
