"""The SQL condition of a rule is true for rows that keep it, false for others, never null, in a real engine."""

import duckdb
import pytest

from evalake.contracts.engines.sql import condition, literal
from evalake.contracts.rule import Kind, Rule
from tests.unit.contracts.examples import EXAMPLE, edges

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
