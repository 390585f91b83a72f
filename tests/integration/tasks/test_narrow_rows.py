"""Rows that a run holds narrow: categories and hashes in place of texts, small integers."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evalake.metrics.compute import measure
from evalake.suites.registry import suite as find_suite
from evalake.tasks import clusters
from evalake.tasks import report as reports
from evalake.tasks.measure import expressions_read, narrow
from evalake.tasks.runtime.context import RunContext
from tests.unit.metrics.test_compute import guard_frame

SUITE = find_suite("command_guard")


def test_narrow_rows_in_files_give_the_values_of_whole_ones(tmp_path: Path) -> None:
    read = expressions_read(SUITE, SUITE.options)
    assert read is not None
    whole, metrics = guard_frame(), SUITE.all_metrics(SUITE.options)
    rows = narrow(whole, read, None)
    assert not [name for name, kind in rows.schema.items() if kind == pl.String]
    rows.head(70).write_parquet(tmp_path / "0.parquet")
    rows.tail(-70).write_parquet(tmp_path / "1.parquet")
    scan = pl.concat(map(pl.scan_parquet, sorted(tmp_path.iterdir())), how="vertical_relaxed")
    measured = measure(scan, metrics, cluster="cluster")
    measured = measured.with_columns(pl.col("model", "judge").cast(pl.String))
    assert_frame_equal(measured, measure(whole, metrics, cluster="cluster"), rel_tol=1e-12)


def test_a_text_that_is_read_as_a_text_stays_one() -> None:
    rows = pl.DataFrame({"answer": ["12", "7"], "label": ["a", "b"], "sample_hash": ["x", "y"], "times": [1, 300]})
    read = [pl.col("answer").cast(pl.Int64) > 8, pl.col("label") == "a"]
    first = narrow(rows, read, None)
    assert dict(first.schema) == {
        "answer": pl.String,
        "label": pl.Categorical,
        "sample_hash": pl.UInt64,
        "times": pl.Int16,
    }
    later = narrow(rows.with_columns(times=pl.lit(1)), read, first.schema)
    assert (later.schema["answer"], later.schema["label"]) == (pl.String, pl.Categorical)


def test_a_report_that_is_read_in_parts_is_the_same(guard: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reports.build_report(guard.lake, guard.run_id)
    monkeypatch.setattr(clusters, "ITEMS_AT_ONCE", 2)
    assert len(clusters.parts_of(guard.lake, guard.run_id, {})) > 1
    parts = reports.build_report(guard.lake, guard.run_id)
    assert parts.wrong == whole.wrong
    assert sum(whole.wrong.values()) > 2
    assert (parts.limits, parts.trivial, parts.comparisons) == (whole.limits, whole.trivial, whole.comparisons)
    for (subject, count, rows), (other, as_many, same) in zip(parts.mistakes(), whole.mistakes(), strict=True):
        assert (subject, count) == (other, as_many)
        assert_frame_equal(rows, same)
    monkeypatch.setattr(reports, "MISTAKES_SHOWN", 1)
    first = reports.build_report(guard.lake, guard.run_id)
    assert first.wrong == whole.wrong
    assert first.results is not None
    assert first.results.height == len(whole.wrong)
