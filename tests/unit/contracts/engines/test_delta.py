"""Contracts as Delta, SQL, ODCS and words state them."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import HealthCheck, given, settings

from evalake.contracts.audit import audit, keeps
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import arrow_schema, conform
from evalake.contracts.engines.sql import check_constraints, condition, describe, literal
from evalake.contracts.rule import Kind, Rule, Severity
from evalake.contracts.tables import SAMPLES
from evalake.suites.registry import all_contracts
from tests.unit.contracts.examples import EDGES, EXAMPLE, edges, row
from tests.unit.contracts.strategies import frames

# The CHECK constraints, held by a real Delta table, refuse what the audit refuses and let its good rows in.


def create(path: Path, contract: Contract) -> DeltaTable:
    table = DeltaTable.create(str(path), schema=arrow_schema(contract))
    if constraints := dict(check_constraints(contract)):
        table.alter.add_constraint(constraints)
    return table


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    write_deltalake(str(path), conform(rows, EXAMPLE).to_arrow().cast(arrow_schema(EXAMPLE)), mode="append")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("delta") / "example"
    create(path, EXAMPLE)
    return path


def test_exactly_these_rules_are_left_to_others() -> None:
    left_out = {rule.id for rule in EXAMPLE.rules} - check_constraints(EXAMPLE).keys()
    assert left_out == {
        rule.id
        for rule in EXAMPLE.rules
        if rule.kind in (Kind.PRESENT, Kind.MATCHES) or rule.severity is Severity.WARNING
    }


@pytest.mark.slow
@pytest.mark.parametrize("rule_id", check_constraints(EXAMPLE))
def test_a_real_table_refuses_each_broken_edge_and_takes_each_kept_one(table: Path, rule_id: str) -> None:
    kept, broken = EDGES.get(rule_id, ([], []))
    column = EXAMPLE.column[next(rule.column for rule in EXAMPLE.rules if rule.id == rule_id)].name
    broken = broken or [{column: float("nan")}]
    before = DeltaTable(str(table)).version()
    for values in broken:
        with pytest.raises(DeltaError, match="validation"):
            write(table, [row(**values)])
    assert DeltaTable(str(table)).version() == before
    good = audit(conform([row(**values) for values in kept], EXAMPLE), EXAMPLE).good
    write(table, good.to_dicts())


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_every_table_can_be_created_with_its_constraints(tmp_path: Path, contract: Contract) -> None:
    table = create(tmp_path / contract.table, contract)
    configured = table.metadata().configuration
    assert {f"delta.constraints.{rule_id}" for rule_id in check_constraints(contract)} <= configured.keys()
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) <= (1, 4)
    assert pa.schema(table.schema().to_arrow()).equals(arrow_schema(contract), check_metadata=True)


def test_a_null_where_none_may_be_is_refused_by_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    table = create(path, SAMPLES)
    nullable = pa.schema([field.with_nullable(True) for field in arrow_schema(SAMPLES)])
    nulls = pa.Table.from_pylist([dict.fromkeys(nullable.names)], schema=nullable)
    with pytest.raises(DeltaError, match="validation"):
        write_deltalake(table, nulls, mode="append")
    assert DeltaTable(str(path)).version() == table.version()


@given(frames(max_rows=40))
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_constraints_and_masks_agree_on_random_rows(
    tmp_path_factory: pytest.TempPathFactory, frame: pl.DataFrame
) -> None:
    constraints = check_constraints(EXAMPLE)
    numbered = frame.with_row_index("came").cast({"came": pl.Int64})
    path = str(tmp_path_factory.mktemp("rows"))
    write_deltalake(path, numbered.to_arrow())
    selected = ", ".join(f"({sql}) AS {rule_id}" for rule_id, sql in constraints.items())
    query = QueryBuilder().register("rows", DeltaTable(path)).execute(f"SELECT {selected} FROM rows ORDER BY came")
    by_delta = pl.DataFrame(query.read_all())
    by_masks = frame.select(keeps(rule, EXAMPLE).alias(rule.id) for rule in EXAMPLE.rules if rule.id in constraints)
    assert by_delta.to_dict(as_series=False) == by_masks.to_dict(as_series=False)


# The SQL condition of a rule is true for rows that keep it, false for others, never null, in a real engine.

# Of lists DuckDB tells the length otherwise; a real Delta table is asked about them in test_delta.py.
OF_LISTS = (Kind.EMPTY,)
CONDITIONS = {
    rule.id: sql
    for rule in EXAMPLE.rules
    if rule.kind not in OF_LISTS and (sql := condition(rule, EXAMPLE)) is not None
}


@pytest.mark.parametrize("rule_id", sorted(CONDITIONS))
def test_it_judges_each_edge_as_the_audit_does(rule_id: str) -> None:
    with duckdb.connect() as engine:
        for edge, values, kept in edges():
            if edge == rule_id:
                names = ", ".join(f"${name} AS {name}" for name in values)
                kept_there = engine.execute(f"SELECT {CONDITIONS[rule_id]} FROM (SELECT {names})", values).fetchone()
                assert kept_there == (kept,), values


def test_a_pattern_has_no_condition_that_every_engine_reads() -> None:
    assert condition(Rule("r", "code", Kind.MATCHES, {"pattern": "[0-9]+"}), EXAMPLE) is None


@pytest.mark.parametrize(
    ("value", "sql"), [("it's", "'it''s'"), ("", "''"), (True, "true"), (False, "false"), (3, "3"), (-1.5, "-1.5")]
)
def test_values_are_written_as_sql_reads_them(value: object, sql: str) -> None:
    assert literal(value) == sql
    with duckdb.connect() as engine:
        read = engine.execute(f"SELECT {sql}").fetchone()
    assert read is not None
    assert read[0] == value


# Every rule is said in one plain phrase.


def test_every_rule_can_be_said_in_words() -> None:
    words = {rule.id: describe(rule) for rule in EXAMPLE.all_rules}
    assert words["needed_present"] == "needed is not null"
    assert words["text_not_blank"] == "text holds more than white space"
    assert words["number_finite"] == "number is a finite number"
    assert words["count_between"] == "count is between 0 and 10"
    assert words["ceiling_between"] == "ceiling is at most 3"
    assert words["code_matches"] == "code is of the form [0-9a-f]{2}(?:-.+)?"
    assert words["low_not_above"] == "low is not above high"
    assert words["reason_present"] == 'reason is not null where state is failed or it\'s or say "x"'
    assert words["error_absent"] == "error is null where flag is true"
    assert words["items_empty"] == "items is an empty list"
    assert words["key_unique"] == "no two rows agree in name"
    assert words["rows"] == "the number of rows is between 1 and 1000"
    assert words["failed_share"] == "in no word do more than 50% of the rows say that state is failed"
    assert len(set(words.values())) == len(words)


def test_truth_values_are_written_in_small_letters() -> None:
    rule = Rule("there", "reason", Kind.PRESENT_WHEN, {"other": "flag", "values": (True, False)})
    assert describe(rule) == "reason is not null where flag is true or false"
