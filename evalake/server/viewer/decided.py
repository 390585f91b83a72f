"""Decisions: the parts of a difference with the samples behind them, and the history of gates."""

from typing import Annotated, Any

import polars as pl
from fastapi import Query
from pydantic import BaseModel, Field

from evalake.contracts.tables import GATE_DECISIONS
from evalake.decisions.explain import explain
from evalake.decisions.sides import find_sides
from evalake.server.viewer.access import LakeHere, Name
from evalake.server.viewer.comparison import Sides, as_answers
from evalake.storage.sql.query import plain

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
        found = explain(lake, wanted.a, wanted.b, run_id=wanted.run, metric=wanted.metric)
        sides = find_sides(lake, (wanted.a, wanted.b), wanted.run)
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
