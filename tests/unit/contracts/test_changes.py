"""A change of a schema says in words what became of the table."""

import polars as pl

from evalake.contracts.contract import Added, Renamed, Rewritten


def unchanged(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows


def test_changes_are_said_in_words() -> None:
    assert Added(("first", "second")).words == "adds first, second"
    assert Renamed("judge_epochs", {"epoch": "version"}).words == "was judge_epochs, epoch becomes version"
    assert Renamed(columns={"a": "b", "c": "d"}).words == "a becomes b, c becomes d"
    assert Renamed("tiny").words == "was tiny"
    assert Rewritten("one row a question", unchanged).words == "one row a question"
