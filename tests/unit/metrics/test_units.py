"""Units: rows of one cluster in one group are one, and errors are taken from how units differ."""

import numpy as np
import polars as pl
import pytest

from evalake.metrics.columns import Columns
from evalake.metrics.units import Units, View

GROUP = np.array([0, 0, 0, 1, 1, 2])  # the last row is in no group
CLUSTER = np.array([0, 0, 1, 0, 1, 1])
UNITS = Units.of(GROUP, 2, CLUSTER)


def view(x: list[float]) -> View:
    return View(Columns(pl.DataFrame({"x": x, "n": [1] * len(x)})), UNITS, {"x": "x", "n": "n"})


def test_a_cluster_is_another_unit_in_another_group() -> None:
    assert UNITS.group_of.tolist() == [0, 0, 1, 1]
    assert UNITS.rows.tolist() == [0, 1, 2, 3, 4]
    assert UNITS.of_row.tolist() == [0, 0, 1, 2, 3]
    assert UNITS.total(np.ones(4)).tolist() == [2.0, 2.0]
    assert UNITS.most(np.array([1.0, 3.0, 0.0, -1.0])).tolist() == [3.0, 0.0]


def test_what_is_in_no_group_is_in_no_sum() -> None:
    seen = view([1.0, 2.0, 3.0, 4.0, 5.0, 100.0])
    assert seen.sums("x").tolist() == [3.0, 3.0, 4.0, 5.0]
    assert seen.totals("x").tolist() == [6.0, 9.0]
    assert seen.largest("x").tolist() == [3.0, 5.0]
    assert seen.rows("n").tolist() == [2.0, 1.0, 1.0, 1.0]
    assert seen.units.spread(np.array([7.0, 8.0])).tolist() == [7.0, 7.0, 8.0, 8.0]


def test_groups_split_by_a_label_know_what_they_are_parts_of() -> None:
    finer, group, unit = UNITS.apart(np.array([1, 2, 1, 1, 0]))
    assert group.tolist() == [0, 0, 1]
    assert unit.tolist() == [0, 1, 0, 2]
    assert finer.group_of.tolist() == [0, 0, 1, 2]


def test_the_error_of_a_mean_of_units_of_one_row_is_the_textbook_one() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    units = Units.of(np.zeros(4, dtype=np.int64), 1, np.arange(4))
    seen = View(Columns(pl.DataFrame({"x": values, "n": [1] * 4})), units, {"x": "x", "n": "n"})
    line = seen.ratio("x", "n")
    assert line.value[0] == values.mean()
    assert np.sqrt(line.variance[0]) == pytest.approx(values.std(ddof=1) / 2)
    assert line.single.tolist() == [True]
    assert line.below.unit_size.tolist() == [1.0]


def test_one_unit_alone_has_no_error() -> None:
    units = Units.of(np.zeros(3, dtype=np.int64), 1, np.zeros(3, dtype=np.int64))
    seen = View(Columns(pl.DataFrame({"x": [1.0, 2.0, 3.0], "n": [1] * 3})), units, {"x": "x", "n": "n"})
    line = seen.ratio("x", "n")
    assert np.isnan(line.variance).tolist() == [True]
    assert line.single.tolist() == [False]


def test_residuals_of_another_ratio_follow_from_those_of_its_own() -> None:
    units = Units.of(np.zeros(4, dtype=np.int64), 1, np.array([0, 0, 1, 2]))
    line = View(Columns(pl.DataFrame({"x": [1.0, 2.0, 4.0, 9.0], "n": [1] * 4})), units, {"x": "x", "n": "n"}).ratio(
        "x", "n"
    )
    expected = (3 - 2 * 3.5) ** 2 + (4 - 3.5) ** 2 + (9 - 3.5) ** 2
    assert line.squares(np.array([3.5]))[0] == pytest.approx(expected)


def test_rows_of_no_unit_add_up_to_nothing() -> None:
    nothing = Units.of(np.zeros(0, dtype=np.int64), 1, np.zeros(0, dtype=np.int64))
    assert nothing.total(np.zeros(0)).tolist() == nothing.total_of_rows(np.zeros(0)).tolist() == [0.0]
    assert nothing.most(np.zeros(0)).tolist() == [0.0]


def test_what_follows_from_the_same_columns_is_made_once() -> None:
    seen = view([1.0, 2.0, 3.0, 4.0, 5.0, 100.0])
    assert seen.sums("x") is seen.sums("x")
    assert seen.ratio("x", "n") is seen.ratio("x", "n")
