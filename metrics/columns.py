"""Columns of samples as arrays, and their sums over any groups of rows, the same in whatever order the rows are.

Fractions are added up in ascending order, and so rows in another order change no bit; whole numbers and conditions add
up exactly anyway, and save the sorting.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from metrics.intervals import Array, Integers


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's values and the rows they are of: of all rows, 0 for null, or the known ones in ascending order."""

    values: Array
    rows: Integers | None

    @classmethod
    def of(cls, series: pl.Series, ascending: bool) -> "_Column":
        if not ascending:
            return cls(series.cast(pl.Float64).fill_null(0.0).to_numpy(), None)
        known = series.is_not_null().arg_true().to_numpy() if series.null_count() else None
        values = series.drop_nulls().cast(pl.Float64).to_numpy()
        order = np.argsort(values, kind="stable")
        return cls(values[order], order if known is None else known[order])

    def at(self, of_row: Integers) -> Integers:
        """Pick, for each value, the number that `of_row` gives its row."""
        return of_row if self.rows is None else of_row[self.rows]


class Columns:
    """The columns of a frame; each is read and put in order once."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self._known: dict[tuple[str, bool], _Column] = {}
        self._ranks: dict[str | None, Integers] = {None: np.zeros(frame.height, dtype=np.int64)}

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._frame.height

    def is_condition(self, column: str) -> bool:
        """Tell whether the column holds conditions."""
        return self._frame.schema[column] == pl.Boolean

    def is_whole(self, column: str) -> bool:
        """Tell whether the column holds whole numbers."""
        return self._frame.schema[column].is_integer()

    def sums(self, column: str, group: Integers, groups: int) -> Array:
        """Add up the column over the rows of each group: [groups]; `group` [rows]; null adds nothing."""
        known = self._column(column, ascending=self._frame.schema[column].is_float())
        return np.asarray(np.bincount(known.at(group), known.values, groups), dtype=np.float64)

    def occurrences(self, column: str, group: Integers, groups: int) -> Array:
        """Count the rows of each group in which the column is neither 0 nor null."""
        if self.is_condition(column):
            return self.sums(column, group, groups)
        return np.bincount(group[self.values(column) != 0], minlength=groups).astype(np.float64)

    def values(self, column: str) -> Array:
        """Return the column, [rows], 0 for null."""
        return self._column(column, ascending=False).values

    def known(self, column: str) -> Integers:
        """Return the numbers of the rows that have a value."""
        return self._frame[column].is_not_null().arg_true().to_numpy().astype(np.int64)

    def ranks(self, column: str | None) -> Integers:
        """Rank each row's value among the column's, from 1, 0 for null; all 0 without a column."""
        if column is not None and column not in self._ranks:
            self._ranks[column] = ranks(self._frame[column])
        return self._ranks[column]

    def _column(self, column: str, *, ascending: bool) -> _Column:
        key = column, ascending
        if key not in self._known:
            self._known[key] = _Column.of(self._frame[column], ascending)
        return self._known[key]


def added_up(group: Integers, values: Array, groups: int) -> Array:
    """Add values up by group, [groups]."""
    return np.asarray(np.bincount(group, values, groups), dtype=np.float64)


def ranks(values: pl.Series) -> Integers:
    """Rank each among the distinct values, from 1, 0 for null. Few are sorted where few differ, as texts do."""
    distinct = values.unique().drop_nulls().sort().alias("value").to_frame().with_row_index("rank", offset=1)
    placed = values.alias("value").to_frame().join(distinct, on="value", how="left", maintain_order="left")
    return placed["rank"].fill_null(0).cast(pl.Int64).to_numpy()


def numbered(keys: Integers, below: int) -> tuple[Integers, Integers]:
    """Number each key among the distinct keys, ascending from 0, and list the distinct keys; all are 0 to `below`."""
    if below > max(8 * len(keys), 1_000_000):
        distinct, number = np.unique(keys, return_inverse=True)
        return number, distinct
    occurs = np.zeros(below, dtype=np.bool_)
    occurs[keys] = True
    return (np.cumsum(occurs) - 1)[keys], np.flatnonzero(occurs)
