"""A table that is watched: read on when it moves, and again where reading it failed."""

from pathlib import Path

import polars as pl
import pytest

from evalake.core.errors import LakeError
from evalake.storage.cached_table import CachedTable, OpenTable
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import join_files
from tests.integration.storage.rows import TOYS, toy


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


def test_only_files_that_are_new_are_read(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    land(lake, TOYS, pl.DataFrame([toy("a"), toy("b", model="provider/m 1")]))
    watched.rows()
    for uri in lake.open(TOYS).file_uris():
        Path(uri).unlink()  # who reads these again fails
    land(lake, TOYS, pl.DataFrame([toy("c", model="third")]))
    assert sorted(watched.rows().select("key", "model").rows()) == [("a", "m"), ("b", "provider/m 1"), ("c", "third")]


def test_rows_that_were_replaced_or_joined_are_there_once(lake: Lake) -> None:
    watched = CachedTable(lake, TOYS)
    for key in ("a", "b", "c"):
        land(lake, TOYS, pl.DataFrame([toy(key, state="early")]))
        watched.rows()
    land(lake, TOYS, pl.DataFrame([toy("b", state="final")]))
    states = [("a", "early"), ("b", "final"), ("c", "early")]
    assert sorted(watched.rows().select("key", "state").rows()) == states
    join_files(lake.open(TOYS))
    assert sorted(watched.rows().select("key", "state").rows()) == states
    assert watched.rows().columns == lake.frame(TOYS).collect().columns


def test_a_table_that_is_opened_anew_now_and_then_is_read_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.storage.cached_table.REOPEN_AFTER", 2)
    watched = CachedTable(lake, TOYS)
    for number in range(6):
        land(lake, TOYS, pl.DataFrame([toy(str(number))]))
        assert sorted(watched.rows()["key"]) == [str(each) for each in range(number + 1)]


def test_an_open_table_is_as_new_as_the_lake_through_all_its_versions(lake: Lake) -> None:
    opened = OpenTable(lake, TOYS)
    with pytest.raises(LakeError, match="is gone"):
        opened.newest()
    for number in range(70):  # it is opened anew now and then
        land(lake, TOYS, pl.DataFrame([toy(f"key {number}")]))
        assert sorted(opened.newest().file_uris()) == sorted(lake.open(TOYS).file_uris())
