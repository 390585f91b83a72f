"""Decisions: the parts of a difference, the history of gates, and what the last check of each table found."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from fastapi import Query
from pydantic import BaseModel, Field

from evalake.contracts.audit import outcome_of
from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import describe
from evalake.contracts.tables import CONTRACT_CHECKS, GATE_DECISIONS
from evalake.decisions.explain import explain
from evalake.decisions.sides import find_sides
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.access import LakeHere, Name
from evalake.server.viewer.comparison import Sides, as_answers
from evalake.storage.sql.query import plain
from evalake.suites.registry import all_contracts

MOST_ROWS = 200  # of a part
MOST_DECISIONS = 5_000
SHOWN = ("part", "side", "a", "b", "judge", "dataset", "sample_id", "sample_hash", "replicate")


class WantedExplanation(Sides):
    """Which difference is split, and in which metric; without one, in the ranking one."""

    metric: Annotated[str, Field(max_length=200)] | None = None


ExplanationQuery = Annotated[WantedExplanation, Query()]


class ExplanationView(BaseModel):
    """The parts as `evalake explain` has them, which sum up to the difference, and the first rows of each."""

    parts: list[dict[str, Any]]
    rows: dict[str, list[dict[str, Any]]]
    runs: dict[str, str]  # of sides a and b
    most_rows: int


class GateHistory(BaseModel):
    """What one rule decided of one model, by judge: each decision, oldest first."""

    suite: str
    rule: str
    model: str
    judge: str | None
    decisions: list[dict[str, Any]]


def explanation(lake: LakeHere, wanted: ExplanationQuery) -> ExplanationView:
    """Split a difference. Raises as `comparison` does."""
    with as_answers():
        found = explain(lake, wanted.a, wanted.b, run_id=wanted.run, tag=wanted.tag, metric=wanted.metric)
        sides = find_sides(lake, (wanted.a, wanted.b), wanted.run, wanted.tag)
    rows = found.rows.select(name for name in SHOWN if name in found.rows.columns)
    parts = {str(part): of.head(MOST_ROWS) for (part,), of in rows.group_by("part", maintain_order=True)}
    return ExplanationView(
        parts=[_plain(row) for row in found.parts.iter_rows(named=True)],
        rows={part: [_plain(row) for row in of.iter_rows(named=True)] for part, of in parts.items()},
        runs={name: side.run["run_id"] for name, side in zip("ab", sides, strict=True)},
        most_rows=MOST_ROWS,
    )


def gate_history(lake: LakeHere, suite: Name = None) -> list[GateHistory]:
    """List the rules that were held, the one decided last first; of the newest MOST_DECISIONS decisions."""
    rows = lake.frame(GATE_DECISIONS)
    rows = rows if suite is None else rows.filter(pl.col("suite") == suite)
    newest = rows.sort("decided_at", descending=True).head(MOST_DECISIONS).collect()
    histories = []
    key = ("suite", "rule", "model", "judge")
    for names, own in newest.group_by(key, maintain_order=True):
        decisions = (
            own.reverse().with_columns(decided_at_us=pl.col("decided_at").dt.epoch("us")).drop("decided_at", *key)
        )
        shown = [_plain(row) for row in decisions.iter_rows(named=True)]
        histories.append(GateHistory(**dict(zip(key, names, strict=True)), decisions=shown))
    return histories


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


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
