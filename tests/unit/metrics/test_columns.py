"""Columns are arrays in which null is 0; rows are ranked and numbered by what they hold."""

import numpy as np
import polars as pl

from evalake.metrics.columns import Columns, added_up, numbered, ordered, ranks

FRAME = pl.DataFrame({"x": [0.5, None, 2.0, 0.0], "yes": [True, False, None, True], "n": [3, 0, None, 1]})


def test_what_a_column_holds_is_told_by_its_type() -> None:
    columns = Columns(FRAME)
    assert [columns.is_condition(name) for name in FRAME.columns] == [False, True, False]
    assert [columns.is_whole(name) for name in FRAME.columns] == [False, False, True]
    assert columns.is_known("x").tolist() == [True, False, True, True]
    assert columns.values("x").tolist() == [0.5, 0.0, 2.0, 0.0]
    assert columns.values("yes").tolist() == [1.0, 0.0, 0.0, 1.0]


def test_ranks_are_of_distinct_values_from_1() -> None:
    assert ranks(pl.Series([2.0, None, 1.0, 2.0])).tolist() == [2, 0, 1, 2]
    assert ranks(pl.Series(["b", "a", None, "b"])).tolist() == [2, 1, 0, 2]
    assert Columns(FRAME).ranks(None).tolist() == [0, 0, 0, 0]


def test_keys_are_numbered_in_order_however_many_there_could_be() -> None:
    keys = np.array([7, 3, 7, 5])
    for below in (8, 10_000_000):
        number, distinct = numbered(keys, below)
        assert (number.tolist(), distinct.tolist()) == ([2, 0, 2, 1], [3, 5, 7])


def test_groups_without_rows_add_up_to_nothing() -> None:
    assert added_up(np.array([2, 2]), np.array([1.5, 2.0]), 3).tolist() == [0.0, 0.0, 3.5]


def test_rows_of_one_key_stay_in_their_order_however_large_keys_are() -> None:
    for far in (3, 100_000):
        assert ordered(np.array([far, 1, far, 0, 1])).tolist() == [3, 1, 4, 0, 2]
