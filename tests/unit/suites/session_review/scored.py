"""Rows of scorings by what a judge answered, and the rules that they break."""

from typing import Any

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.models.request import Failure, Reply
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.score import score
from tests.unit.suites.session_review.support import item, talk

BREAKDOWN = "Logical flow: 15/25\nConsistency: 20/25\nTool relevance: 16/25\nSynthesis quality: 16/25"

REVIEW = f"A premature_conclusion at 4.\n{BREAKDOWN}\n67"

LANDED = {"landed_by_run": "r", "origin": "call"}


def scored(*answers: str | Failure | Reply | None, **changes: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    asked = item(**changes)
    rows = score(asked, talk(asked, *answers)[1])
    (row,) = rows[RESULTS.table]
    return dict(row), [dict(tool) for tool in rows[MISSING_TOOLS.table]]


def broken(row: dict[str, Any], tools: list[dict[str, Any]]) -> list[Any]:
    """The rules that the rows break."""
    tables = [(RESULTS, [row]), (MISSING_TOOLS, tools)]
    frames = [conform([{**each, **LANDED} for each in rows], table) for table, rows in tables if rows]
    return [
        rules for frame, (table, _) in zip(frames, tables, strict=False) for rules in audit(frame, table).bad["broken"]
    ]
