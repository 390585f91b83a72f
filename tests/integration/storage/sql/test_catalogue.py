"""The catalogue describes every table and view as its contract does, with the types that a query meets."""

import polars as pl
import pytest

from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.storage.sql.catalogue import catalogue, column_frame
from evalake.storage.sql.query import query
from evalake.storage.sql.views import views
from evalake.suites.registry import all_contracts

TABLES = all_contracts()
VIEWS = views(TABLES)


def test_the_catalogue_describes_every_column_as_its_contract_does() -> None:
    entries = {entry.name: entry for entry in catalogue(TABLES)}
    assert list(entries) == [*(contract.table for contract in TABLES), *(view.name for view in VIEWS)]
    for contract in TABLES:
        entry = entries[contract.table]
        assert (entry.kind, entry.key) == ("table", contract.key)
        described = [(each.column, each.nullable, each.description) for each in entry.columns]
        assert described == [(each.name, each.nullable, each.description) for each in contract.columns]
    (cost,) = (each for each in entries["calls"].columns if each.column == "cost_usd")
    assert (cost.type, cost.nullable, cost.key) == ("DOUBLE", True, False)
    assert "cost_usd is at least 0" in cost.rules
    assert "no two rows agree in run_id" in entries["runs"].rules
    assert entries["leaderboard"].kind == "view"


def test_types_are_those_a_query_meets(lake: Lake) -> None:
    full = column_frame(catalogue(TABLES))
    met = query(
        lake, TABLES, "select table_name, column_name, data_type from duckdb_columns() where not internal"
    ).rows()
    assert set(full.select("table", "column", "type").iter_rows()) == set(met)
    types = dict(full.filter(pl.col("table") == "runs").select("column", "type").iter_rows())
    assert types["models"] == "VARCHAR[]"
    assert types["started_at"] == "TIMESTAMP WITH TIME ZONE"


def test_one_table_is_described_by_its_name_and_an_unknown_one_is_told_with_what_there_is() -> None:
    (runs,) = catalogue(TABLES, "runs")
    assert (runs.name, runs.columns[0].column) == ("runs", "run_id")
    with pytest.raises(UsageError, match=r"no table or view is called rnus; did you mean runs"):
        catalogue(TABLES, "rnus")
