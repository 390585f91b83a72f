"""The metrics of session_review against values computed by hand or by the standard library."""

import math
import statistics
from typing import Any

import polars as pl
import pytest

from evalake.metrics.compute import measure
from evalake.suites.session_review.metrics import METRICS, TOOL_METRICS, tools_named
from evalake.suites.session_review.prompts import criteria_hash

SCORES = [49, 50, 74, 75, 100, 0]
TYPES: dict[str, Any] = {
    "missing_tools": pl.List(pl.String),
    "logical_flow": pl.Int64,
    "human_score": pl.Float64,
    "human_weight_score": pl.Float64,
}


def row(**changes: Any) -> dict[str, Any]:
    given = {
        "model": "agents",
        "judge": "j",
        "dataset": "d",
        "sample_id": "s",
        "sample_hash": "h",
        "replicate": 0,
        "alert_type": "Disk",
        "agent": "a",
        "criteria_hash": criteria_hash(),
        "status": "completed",
        "total_score": 50,
        "logical_flow": 10,
        "consistency": 10,
        "tool_relevance": 10,
        "synthesis_quality": 20,
        "breakdown_consistent": True,
        "missing_tools": [],
        "cost_usd": 0.1,
        "input_tokens": 1,
        "output_tokens": 1,
        "human_score": None,
        "human_weight_score": None,
    }
    return {**given, **changes}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides=TYPES)


def values(rows: pl.DataFrame) -> dict[tuple[str, str], tuple[float | None, int]]:
    """(metric, slice value) -> value and n; the slice `all` has an empty slice value."""
    measured = measure(rows, METRICS)
    return {
        (each["metric"], each["slice_value"]): (each["value"], each["n"])
        for each in measured.filter(pl.col("slice").is_in(["all", "alert_type"])).iter_rows(named=True)
    }


def failed(**changes: Any) -> dict[str, Any]:
    points = dict.fromkeys(["total_score", "logical_flow", "consistency", "tool_relevance", "synthesis_quality"])
    return row(status="failed", breakdown_consistent=None, missing_tools=None, **points, **changes)


def test_scores_bands_and_failures() -> None:
    rows = [row(sample_id=str(n), total_score=score) for n, score in enumerate(SCORES)]
    found = values(frame(*rows, failed(sample_id="f"), failed(sample_id="g")))
    assert found["score_mean", ""] == (pytest.approx(statistics.mean(SCORES)), 6)
    assert found["score_median", ""] == (pytest.approx(statistics.median(SCORES)), 6)
    assert found["score_std", ""] == (pytest.approx(statistics.pstdev(SCORES)), 6)
    deciles = statistics.quantiles(SCORES, n=10, method="inclusive")
    assert found["score_p10", ""] == (pytest.approx(deciles[0]), 6)
    assert found["score_p90", ""] == (pytest.approx(deciles[8]), 6)
    assert found["score_band_red_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["score_band_yellow_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["score_band_green_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["scoring_failure_rate", ""] == (pytest.approx(2 / 8), 8)
    assert found["category_mean_synthesis_quality", ""] == (20, 6)


def test_scorings_that_are_not_over_count_nowhere() -> None:
    found = values(frame(row(), failed(sample_id="p") | {"status": "pending"}))
    assert found["scoring_failure_rate", ""] == (0, 1)


def test_without_any_score_everything_is_null() -> None:
    found = values(frame(failed()))
    assert found["scoring_failure_rate", ""] == (1, 1)
    for metric in ("score_mean", "score_std", "score_p10", "score_band_red_rate", "breakdown_consistent_rate"):
        assert found[metric, ""] == (None, 0)


def test_slices_are_those_of_alert_types_agents_and_criteria() -> None:
    rows = frame(row(total_score=40), row(sample_id="t", alert_type="Memory", agent="b", total_score=80))
    found = values(rows)
    assert found["score_mean", "Memory"] == (80, 1)
    assert found["score_band_red_rate", "Disk"] == (1, 1)
    sliced = set(measure(rows, METRICS).filter(metric="score_mean")["slice"])
    assert sliced == {"all", "alert_type", "agent", "criteria_hash"}


def test_breakdowns_and_obsolete_criteria() -> None:
    rows = [row(), row(sample_id="t", breakdown_consistent=False), row(sample_id="u", breakdown_consistent=None)]
    found = values(frame(*rows, row(sample_id="v", criteria_hash="0" * 64)))
    assert found["breakdown_consistent_rate", ""] == (pytest.approx(2 / 3), 3)
    assert found["obsolete_criteria_rate", ""] == (0.25, 4)


def test_retest_pools_the_variance_within_sessions_by_judge() -> None:
    repeated = {"a": [50, 60, 70], "b": [40, 44], "once": [99]}
    rows = [
        row(sample_id=name, replicate=n, total_score=score)
        for name, scores in repeated.items()
        for n, score in enumerate(scores)
    ]
    rows += [failed(sample_id="a", replicate=3), failed(sample_id="b", replicate=2)]
    squares = 2 * statistics.variance(repeated["a"]) + statistics.variance(repeated["b"])
    expected = math.sqrt(squares / 3)
    assert values(frame(*rows))["retest_std", ""] == (pytest.approx(expected), 2)
    late = [failed(sample_id="c"), *(row(sample_id="c", replicate=n, total_score=n) for n in (1, 2))]
    assert values(frame(*late))["retest_std", ""] == (pytest.approx(statistics.stdev([1, 2])), 1)
    judges = measure(frame(*rows, *(each | {"judge": "k", "total_score": 50} for each in rows[:3])), METRICS)
    assert judges.filter(metric="retest_std")["value"].to_list() == [pytest.approx(expected), 0]


def test_a_missing_tool_is_counted_once_for_each_session_and_judge() -> None:
    rows = frame(
        row(sample_id="a", missing_tools=["heap-dump", "disk-usage"]),
        row(sample_id="a", missing_tools=["heap-dump"], replicate=1),
        row(sample_id="b", missing_tools=["heap-dump"]),
        row(sample_id="c", missing_tools=[]),
        failed(sample_id="d"),
        row(sample_id="a", missing_tools=["heap-dump"], judge="k"),
    )
    measured = measure(tools_named(rows.lazy()), TOOL_METRICS)
    assert measured.select("judge", "slice", "slice_value", "value").rows() == [
        ("j", "tool_name", "disk-usage", 1),
        ("j", "tool_name", "heap-dump", 2),
        ("k", "tool_name", "heap-dump", 1),
    ]
    assert measure(tools_named(frame(row()).lazy()), TOOL_METRICS).is_empty()
