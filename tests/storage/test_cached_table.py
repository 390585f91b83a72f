"""A table that is watched: read when it moves, and again where reading it failed."""

from pathlib import Path

import polars as pl
import pytest

from storage.cached_table import CachedTable
from storage.lake import Lake
from storage.landing import land
from tests.storage.rows import TOYS, toy


def test_rows_that_could_not_be_read_are_read_the_next_time(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    assert watched.rows().is_empty()
    land(lake, TOYS, pl.DataFrame([toy("a")]))
    assert watched.rows()["key"].to_list() == ["a"]
    assert watched.rows() is watched.rows()
    land(lake, TOYS, pl.DataFrame([toy("b")]))
    files = [Path(uri) for uri in lake.open(TOYS).file_uris()]
    for file in files:
        file.rename(file.with_suffix(".away"))
    with pytest.raises(Exception, match=r"No such file|not found"):
        watched.rows()
    for file in files:
        file.with_suffix(".away").rename(file)
    assert sorted(watched.rows()["key"]) == ["a", "b"]
