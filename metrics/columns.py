"""Columns of samples as arrays: sums, means and deviations of any groups of rows, the same in whatever order they are.

Fractions are added up in ascending order, and so rows in another order change no bit; whole numbers and conditions add
up exactly anyway, and save the sorting.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from metrics.intervals import Array, Integers


@dataclass(frozen=True, eq=False)
class Moments:
    """Of a column's known values in each group: how many, their sum, mean and sample standard deviation (ddof 1)."""

    n: Array
    total: Array
    mean: Array
    deviation: Array

    def of_first(self, groups: int) -> "Moments":
        """Of the first groups only."""
        return Moments(self.n[:groups], self.total[:groups], self.mean[:groups], self.deviation[:groups])


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
        """What is given for each row, for each value."""
        return of_row if self.rows is None else of_row[self.rows]


class Columns:
    """The columns of a frame; each is read and put in order once."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self._known: dict[tuple[str, bool], _Column] = {}
        self._ranks: dict[str | None, Integers] = {None: np.zeros(frame.height, dtype=np.int64)}

    def sums(self, column: str, group: Integers, groups: int) -> Array:
        """[groups]: the column's sum over the rows of each; `group` [rows]; null adds nothing."""
        known = self._column(column, ascending=self._frame.schema[column].is_float())
        return np.asarray(np.bincount(known.at(group), known.values, groups), dtype=np.float64)

    def moments(self, column: str, group: Integers, groups: int) -> Moments:
        """Of the rows of each group; equal values deviate by exactly nothing."""
        known = self._column(column, ascending=True)
        of_value = known.at(group)
        n = np.bincount(of_value, minlength=groups).astype(np.float64)
        pivot = np.zeros(groups)
        pivot[of_value[::-1]] = known.values[::-1]
        offset = known.values - pivot[of_value]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.bincount(of_value, offset, groups) / n
            squares = np.bincount(of_value, (offset - shift[of_value]) ** 2, groups)
            deviation = np.sqrt(squares / np.where(n >= 2, n - 1, np.nan))
        return Moments(n, self.sums(column, group, groups), pivot + shift, deviation)

    def ranks(self, column: str | None) -> Integers:
        """[rows]: the place of each row's value among the column's, from 1, 0 for null; all 0 without a column."""
        if column is not None and column not in self._ranks:
            self._ranks[column] = ranks(self._frame[column])
        return self._ranks[column]

    def distinct(self, column: str) -> Array:
        """The values that ranks 1, 2 … stand for."""
        return self._frame[column].unique().drop_nulls().sort().cast(pl.Float64).to_numpy()

    def _column(self, column: str, *, ascending: bool) -> _Column:
        key = column, ascending
        if key not in self._known:
            self._known[key] = _Column.of(self._frame[column], ascending)
        return self._known[key]


def ranks(values: pl.Series) -> Integers:
    """The place of each among the distinct values, from 1, 0 for null. Few are sorted where few differ, as texts do."""
    distinct = values.unique().drop_nulls().sort().alias("value").to_frame().with_row_index("rank", offset=1)
    found = values.alias("value").to_frame().join(distinct, on="value", how="left", maintain_order="left")
    return found["rank"].fill_null(0).cast(pl.Int64).to_numpy()
