"""Columns of samples as arrays, numbers of their rows by what they hold, and sums by such numbers."""

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from evalake.metrics.intervals import Array, Integers

STRATUM = "draw_stratum"
"""The column of the stratum that a sample was drawn from; null, or no such column, where nothing was drawn."""

INDEX: DTypeLike = np.int32
"""The type of numbers of units: half of what NumPy would take."""

CONTENT = "content hash"
"""The column of a hash of the other columns."""


class Columns:
    """The columns of a frame."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._ranks: dict[str, Integers] = {}  # as few bytes each as hold them

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.frame.height

    def is_condition(self, column: str) -> bool:
        """Tell whether the column holds conditions."""
        return self._schema[column] == pl.Boolean

    def is_whole(self, column: str) -> bool:
        """Tell whether the column holds whole numbers."""
        return self._schema[column].is_integer()

    @cached_property
    def _schema(self) -> pl.Schema:
        return self.frame.schema  # which a frame makes again each time

    def values(self, column: str) -> Array:
        """Return the column, [rows], 0 for null; a copy, so that no more than a few are in memory."""
        return self.frame[column].cast(pl.Float64).fill_null(0.0).to_numpy()

    def is_known(self, column: str) -> NDArray[np.bool_]:
        """Tell which rows have a value."""
        return self.frame[column].is_not_null().to_numpy()

    def ranks(self, column: str | None) -> Integers:
        """Rank each row's value among the column's, from 1, 0 for null; all 0 without a column."""
        if column is None:
            return np.zeros(self.rows, dtype=np.int64)
        if column not in self._ranks:
            self._ranks[column] = small(ranks(self.frame[column]))
        return self._ranks[column].astype(np.int64)


def added_up(group: Integers, values: Array, groups: int) -> Array:
    """Add values up by group, [groups]."""
    return np.asarray(np.bincount(group, values, groups), dtype=np.float64)


def small(numbers: Integers) -> Integers:
    """Convert numbers from 0 to the type that takes the fewest bytes; no arithmetic is done with them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def ranks(values: pl.Series) -> Integers:
    """Rank each among the distinct values, from 1, 0 for null. Only the distinct values are sorted."""
    distinct = values.unique().drop_nulls().sort().alias("value").to_frame().with_row_index("rank", offset=1)
    if distinct.height < 2:
        return values.is_not_null().cast(pl.Int64).to_numpy()
    placed = values.alias("value").to_frame().join(distinct, on="value", how="left", maintain_order="left")
    return placed["rank"].fill_null(0).cast(pl.Int64).to_numpy()


def numbered(keys: Integers, below: int) -> tuple[Integers, Integers]:
    """Assign each key its number among the distinct keys, which are listed, too. Keys are 0 to `below`."""
    if below > max(8 * len(keys), 1_000_000):
        distinct, number = np.unique(keys, return_inverse=True)
        return number, distinct
    occurs = np.zeros(below, dtype=np.bool_)
    occurs[keys] = True
    return (np.cumsum(occurs) - 1)[keys], np.flatnonzero(occurs)


def begins(*keys: Integers) -> NDArray[np.bool_]:
    """Tell which rows, standing in order of the keys, are the first with theirs."""
    first = np.ones(len(keys[0]), dtype=np.bool_)
    first[1:] = reduce(np.logical_or, [key[1:] != key[:-1] for key in keys])
    return first


def ordered(keys: Integers) -> Integers:
    """List row numbers in order of their keys, 0 or more, those of one key in the order they are in."""
    if keys.max(initial=0) <= np.iinfo(np.uint16).max:
        return np.argsort(keys.astype(np.uint16), kind="stable")  # by digits, which is faster
    return np.argsort(keys, kind="stable")


def share_within(added: Array, stratum: Integers, group: Integers, groups: int) -> Array:
    """Compute the share of the variance between units that lies within strata, [groups], at most 1.

    Two unseen units in every stratum, one at either extreme of the group, keep few units that agree from showing that
    a stratum does not vary (add two, Agresti and Coull 1998). So strata of next to no units lessen nothing.
    """
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group, added)
    np.maximum.at(high, group, added)
    strata = int(stratum.max(initial=0)) + 1
    group = group.astype(np.int64)
    number, keys = numbered(group * strata + stratum, groups * strata)
    of_stratum = keys // strata

    def squares(of: Integers, cells: int, ends: tuple[Array, Array]) -> Array:
        """Estimate how much the units of each cell add to the variance."""
        n, sums, squared = (added_up(of, each, cells) for each in (np.ones_like(added), added, added**2))
        least, most = ends
        with np.errstate(all="ignore"):
            about = squared + least**2 + most**2 - (sums + least + most) ** 2 / (n + 2)
            return np.where(n > 0, n / (n + 1) * about, 0.0)

    within = added_up(of_stratum, squares(number, len(keys), (low[of_stratum], high[of_stratum])), groups)
    whole = squares(group, groups, (low, high))
    with np.errstate(all="ignore"):
        return np.where(whole > 0, np.minimum(within / whole, 1.0), 1.0)


def strata_of(frame: pl.DataFrame, cluster: str) -> Integers | None:
    """Assign each row the number of the stratum, or the strata, that its cluster was drawn from; None without any."""
    if not frame[STRATUM].count():
        return None
    of_cluster = frame.group_by(cluster).agg(pl.col(STRATUM).cast(pl.String).unique().sort().str.join("\n"))
    joined = frame.select(cluster).join(of_cluster, on=cluster, how="left", maintain_order="left")
    return ranks(joined[STRATUM])


def settled(frame: pl.DataFrame, groups: Sequence[str], cluster: str | None) -> tuple[Integers, Integers, Integers]:
    """Put rows in order of group, then cluster, then content.

    Returns:
        Their order, and in this order the number of each row's group and cluster. Without a cluster each row is one.
    """
    group = np.zeros(frame.height, dtype=np.int64)
    for name in groups:
        rank = ranks(frame[name])
        group *= int(rank.max(initial=0)) + 1
        group += rank
    group = small(group)
    keys = [frame[CONTENT].to_numpy()] if CONTENT in frame.columns else []
    if cluster is None:
        order = small(np.lexsort([*keys, group]))
        return order, group[order], np.arange(frame.height)
    is_one = not np.ptp(group) if len(group) else True
    keys.append(frame[cluster].to_numpy() if is_one and frame[cluster].dtype.is_integer() else ranks(frame[cluster]))
    order = small(np.lexsort([*keys, group]))
    of_cluster = keys[-1][order]
    if is_one:
        of_cluster = np.cumsum(begins(of_cluster), dtype=INDEX)
    return order, group[order], of_cluster
