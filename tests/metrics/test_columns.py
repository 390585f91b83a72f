"""Columns add up by group, leave nulls out, and give the same bits in whatever order their rows are."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from metrics.columns import Columns, added_up, numbered, ranks

FRAME = pl.DataFrame({"x": [0.5, None, 2.0, 0.0], "yes": [True, False, None, True], "n": [3, 0, None, 1]})
GROUP = np.array([0, 0, 1, 1])


def test_sums_leave_nulls_out_and_occurrences_count_what_is_neither_0_nor_null() -> None:
    columns = Columns(FRAME)
    assert [columns.sums(name, GROUP, 2).tolist() for name in FRAME.columns] == [[0.5, 2.0], [1.0, 1.0], [3.0, 1.0]]
    assert [columns.occurrences(name, GROUP, 2).tolist() for name in FRAME.columns] == [[1, 1], [1, 1], [1, 1]]


def test_what_a_column_holds_is_told_by_its_type() -> None:
    columns = Columns(FRAME)
    assert [columns.is_condition(name) for name in FRAME.columns] == [False, True, False]
    assert [columns.is_whole(name) for name in FRAME.columns] == [False, False, True]
    assert columns.known("x").tolist() == [0, 2, 3]
    assert columns.values("x").tolist() == [0.5, 0.0, 2.0, 0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_another_order_of_rows_changes_no_bit_of_a_sum(values: list[float], chance: object) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    group = np.zeros(len(values), dtype=np.int64)
    first, second = (Columns(pl.DataFrame({"x": each})).sums("x", group, 1) for each in (values, shuffled))
    assert first.tobytes() == second.tobytes()


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
