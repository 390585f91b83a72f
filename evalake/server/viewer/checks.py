"""What the last check of each table found of its rules, as `evalake check` keeps it in `contract_checks`."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from pydantic import BaseModel

from evalake.contracts.audit import outcome_of
from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import describe
from evalake.contracts.tables import CONTRACT_CHECKS
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.access import LakeHere
from evalake.suites.registry import all_contracts


class EngineResult(BaseModel):
    """What came of a rule in one engine."""

    engine: str
    passed: bool
    outcome: str  # kept, warning or broken
    rows_failed: int
    message: str | None


class RuleCheck(BaseModel):
    """A rule, in words, and what came of it."""

    rule_id: str
    demands: str
    severity: str
    dimension: str
    results: list[EngineResult]


class TableCheck(BaseModel):
    """A table as it was checked last."""

    table: str
    description: str
    version: int
    rows: int
    checked_at_us: Micros
    broken: int  # rules
    warnings: int  # rules that are not kept and refuse nothing
    rules: list[RuleCheck]


def last_checks(lake: LakeHere) -> list[TableCheck]:
    """List each table's rules with their results in its newest checked version; tables that broke one come first."""
    rows = lake.frame(CONTRACT_CHECKS).filter(pl.col("batch_id").is_null(), pl.col("table_version").is_not_null())
    is_newest = pl.col("table_version") == pl.col("table_version").max().over("table_name")
    newest = rows.filter(is_newest).sort("rule_id", "engine").collect()
    tables = [_table(each, newest.filter(table_name=each.table)) for each in all_contracts(lake)]
    return sorted(
        (table for table in tables if table is not None), key=lambda table: (not table.broken, not table.warnings)
    )


_OF_ENGINE = ("engine", "passed", "rows_failed", "message")


def _outcome(row: Mapping[str, Any]) -> str:
    return outcome_of(row["severity"], passed=row["passed"])


def _table(contract: Contract, rows: pl.DataFrame) -> TableCheck | None:
    if rows.is_empty():
        return None
    by_rule = rows.rows_by_key("rule_id", named=True, include_key=True)
    demands = {each.id: describe(each) for each in contract.rules}
    demands |= {each.id: describe(each) for each in contract.table_rules}
    told: dict[str, set[str]] = {"kept": set(), "warning": set(), "broken": set()}
    for row in rows.iter_rows(named=True):
        told[_outcome(row)].add(row["rule_id"])
    places = {rule_id: number for number, rule_id in enumerate(demands)}
    return TableCheck(
        table=contract.table,
        description=contract.description,
        version=rows["table_version"][0],
        rows=max(rows["rows_checked"].to_list()),
        checked_at_us=micros(max(rows["checked_at"].to_list())) or 0,
        broken=len(told["broken"]),
        warnings=len(told["warning"]),
        rules=[
            RuleCheck(
                rule_id=rule_id,
                demands=demands.get(rule_id, rule_id),
                severity=results[0]["severity"],
                dimension=results[0]["dimension"],
                results=[
                    EngineResult(outcome=_outcome(row), **{name: row[name] for name in _OF_ENGINE}) for row in results
                ],
            )
            for rule_id, results in sorted(by_rule.items(), key=lambda each: places.get(each[0], len(places)))
        ],
    )
