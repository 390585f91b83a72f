"""Rows whose samples share something are one unit: by the dataset's own clusters, and by equal inputs."""

import polars as pl

from evalake.tasks.clusters import shared_inputs, twins_of, with_clusters

SAMPLES = pl.DataFrame(
    {
        "sample_hash": ["a", "b", "c", "d", "e"],
        "dataset": ["one", "one", "one", "two", "two"],
        "sample_id": ["1", "2", "3", "1", "2"],
        "cluster": ["x", "x", None, None, None],
        "input": ["ls", "rm", "cat", "cat", ""],
    }
)
ROWS = pl.DataFrame({"sample_hash": ["e", "d", "c", "b", "a", "unknown"]})


def test_equal_inputs_are_one_unit_across_datasets_and_order_stays() -> None:
    found = with_clusters(ROWS, SAMPLES, twins_of(SAMPLES))
    assert found["sample_hash"].to_list() == ROWS["sample_hash"].to_list()
    assert found["cluster"].to_list() == ["two/2", "one/3", "one/3", "one/x", "one/x", "unknown"]


def test_a_cluster_of_the_row_stays_where_its_sample_is_unknown() -> None:
    found = with_clusters(ROWS.with_columns(cluster=pl.lit("own")), SAMPLES, twins_of(SAMPLES))
    assert found["cluster"].to_list()[-1] == "own"


def test_what_datasets_have_in_common_is_told() -> None:
    told = "1 input of one and two are the same: each counts as one unit"
    assert shared_inputs(ROWS, SAMPLES) == [told]
    assert shared_inputs(ROWS.head(1), SAMPLES) == []
