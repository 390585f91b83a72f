"""Audits as the judges of a panel judge them, and what the panel derives from them."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.panels import derive
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.support import finding, frame_of, judgement, landed, line, rows_of, target

JUDGES = ("a", "b", "c")


def said(found: bool | None, share: float = 1.0, verdict: bool | None = True) -> dict[str, Any] | None:
    """A judgement by its answer on the target; None for a judge error."""
    if found is None:
        return None
    return judgement([finding()] if found else [], target(found, share=share), said=verdict)


def derived_of(lines: list[dict[str, Any]], options: Mapping[str, Any] = DEFAULTS) -> Any:
    """What a panel derives from recorded lines."""
    results, findings = rows_of(lines)
    return derive({RESULTS.table: results, FINDINGS.table: findings}, options)


def panel(*answers: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The row of a panel of as many judges as there are answers."""
    lines = [line(0, judged=answer, judge=judge, **more) for judge, answer in zip(JUDGES, answers, strict=False)]
    (row,) = derived_of(lines).rows[RESULTS.table]
    return dict(row)


def classed(*names: str, **more: Any) -> dict[str, Any]:
    """A judgement that found nothing, whose findings have these classes."""
    return judgement([finding(n, name, **more) for n, name in enumerate(names, 1)], target(False))


def with_panel(lines: list[dict[str, Any]], options: Mapping[str, Any] = DEFAULTS) -> pl.DataFrame:
    frame = frame_of(lines)
    derived = landed(derived_of(lines, options).rows[RESULTS.table])
    return pl.concat([frame, derived], how="diagonal")


DAWID_SKENE = {**DEFAULTS, "aggregation": "dawid_skene"}


def by_dawid_skene(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """The rows of a panel by Dawid and Skene, and the frame that a snapshot of the run would be of."""
    results, findings = rows_of(lines)
    derived = derive({RESULTS.table: results, FINDINGS.table: findings}, DAWID_SKENE)
    rows = [dict(row) for row in derived.rows[RESULTS.table]]
    return rows, pl.concat([frame_of(lines), landed(rows)], how="diagonal")


def told(judge: str, number: int, found: bool) -> dict[str, Any]:
    """A judge's word on a vulnerable contract's target, with a finding of the class that goes with it."""
    classification = "TARGET_MATCH" if found else "HALLUCINATED"
    judged = judgement([finding(1, classification)], target(found), said=found)
    return line(number, judged=judged, judge=judge)


def poor_and_good() -> list[dict[str, Any]]:
    """Two good judges, and three that call every second target found, together in some audits: 64 audits, half found.

    The three are right as often as wrong, and have no error in common but by chance.
    """
    lines = []
    for number in range(64):
        truth, bits = number % 2 == 0, number // 2
        lines += [told(judge, number, truth) for judge in ("good 1", "good 2")]
        lines += [told(f"poor {place}", number, bool(bits >> place & 1)) for place in range(3)]
    return lines
