"""Slices: groups by the values of a column, whose units have sums in common where they are of the same rows."""

import numpy as np
import polars as pl

from evalake.metrics.columns import Columns
from evalake.metrics.slices import Slicing, units_of
from evalake.metrics.units import Units

FRAME = pl.DataFrame(
    {
        "column model": ["a"] * 4 + ["b"] * 4,
        "column tier": [2, 2, 1, 1, 1, 1, 2, 2],  # one value a cluster
        "column kind": ["x", None, "y", None, "x", None, "x", None],  # of half of the rows
        "column prompt": ["p", "q", "p", "q", "p", "q", "p", "q"],  # splits clusters
    }
)
GROUP, CLUSTER = np.array([0] * 4 + [1] * 4), np.array([0, 0, 1, 1, 0, 0, 1, 1])
VALUES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
COLUMNS = Columns(FRAME)


def slicing(name: str) -> Slicing:
    return Slicing.of(COLUMNS, name, ("model",))


def test_rows_without_a_value_are_in_no_group_of_a_slice() -> None:
    kinds = slicing("kind")
    assert kinds.keys.rows() == [("a", "x"), ("b", "x"), ("a", "y")]
    assert kinds.group.tolist() == [0, 3, 2, 3, 1, 3, 1, 3]


def test_units_of_slices_together_have_the_sums_that_each_slice_has_alone() -> None:
    slicings = [slicing(name) for name in ("all", "tier", "kind", "prompt")]
    units = units_of(slicings, GROUP, CLUSTER)
    alone = [Units.of(each.group, each.keys.height, CLUSTER) for each in slicings]
    assert units.groups == sum(each.groups for each in alone)
    assert units.add_up(VALUES).tolist() == [x for each in alone for x in each.by_unit(VALUES[each.rows])]
    assert units.by_unit(VALUES[units.rows]).tolist() == units.add_up(VALUES).tolist()


def test_slices_of_the_same_rows_that_split_no_unit_are_added_up_once() -> None:
    shares = units_of([slicing(name) for name in ("all", "tier", "prompt")], GROUP, CLUSTER).shares
    assert shares[0].pool is shares[1].pool
    assert shares[2].pool is not shares[0].pool
