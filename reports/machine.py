"""The report for machines: what `report.json` holds."""

import math
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from reports.coverage import as_objects
from reports.report import Report


def as_data(report: Report) -> dict[str, Any]:
    """Convert everything but the figures to what JSON has; unknown numbers are null."""
    data = {
        "title": report.title,
        "run": dict(report.run),
        "snapshot": dict(report.snapshot),
        "target": None
        if report.target is None or report.ranking is None
        else {"metric": report.ranking.quantity.metric, "value": report.target},
        "trivial": dict(report.trivial),
        "ranking": [_place(report, subject) for subject in report.subjects],
        "comparisons": [
            {"judge": judge, **asdict(comparison)}
            for judge, compared in report.comparisons.items()
            for comparison in compared
        ],
        "coverage": as_objects(report.coverage),
        "missing": [asdict(each) for each in report.missing],
        "metrics": report.metrics.to_dicts(),
    }
    return {key: _plain(value) for key, value in data.items()}


def _place(report: Report, subject: Any) -> dict[str, Any]:
    standing = report.standings[subject]
    decision = report.decision(subject)
    return {
        "model": subject.model,
        "judge": subject.judge,
        "rank": standing.rank,
        "band": standing.band if any(report.comparisons.values()) else None,
        "value": standing.value,
        "decision": None if decision is None else decision.verdict.value,
        "more_samples": None if decision is None else decision.more_samples,
    }


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case float():
            return value if math.isfinite(value) else None
        case datetime() | date():
            return value.isoformat()
        case None | str() | int():
            return value
    return str(value)
