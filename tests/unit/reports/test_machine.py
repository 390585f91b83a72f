"""The report for machines: whole, plain JSON, and null where a number is unknown."""

import math
from dataclasses import asdict
from datetime import date

from evalake.reports.files import as_data
from evalake.reports.ranking import Missing
from tests.unit.reports.samples import guard_metrics, metric, report


def test_unknown_and_infinite_numbers_are_null() -> None:
    rows = [metric("a", "score", math.nan), metric("a", "detection", math.inf)]
    data = as_data(report(rows, run={"cost_usd": -math.inf}))
    assert [row["value"] for row in data["metrics"]] == [None, None]
    assert data["run"]["cost_usd"] is None
    assert data["ranking"][0]["value"] is None
    assert data["ranking"][0]["decision"] is None


def test_without_a_target_or_comparisons_nothing_is_decided() -> None:
    data = as_data(report(guard_metrics("a", 0.9, 0.9), target=None))
    assert (data["target"], data["comparisons"], data["missing"]) == (None, [], [])
    assert (data["ranking"][0]["letters"], data["ranking"][0]["decision"]) == (None, None)


def test_moments_are_written_as_iso_and_what_is_missing_with_its_bounds() -> None:
    missing = Missing("a", None, 10, 2, {"timeout": 2}, {"score": (0.5, 0.75)})
    built = report(guard_metrics("a", 0.9, 0.9), missing=(missing,), run={"day": date(2026, 3, 1)})
    data = as_data(built)
    assert (data["run"]["started_at"], data["run"]["day"]) == ("2025-01-01T00:00:00+00:00", "2026-03-01")
    assert data["missing"] == [{**asdict(missing), "bounds": {"score": [0.5, 0.75]}}]
