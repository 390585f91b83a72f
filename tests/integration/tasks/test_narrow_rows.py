"""Rows that a run holds narrow: categories and hashes in place of texts, small integers."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evalake.metrics.compute import measure
from evalake.suites.registry import suite as find_suite
from evalake.tasks import report as reports
from evalake.tasks.measure import expressions_read, narrow, texts_read
from evalake.tasks.runtime.context import RunContext
from tests.unit.metrics.test_compute import guard_frame

SUITE = find_suite("command_guard")


def test_narrow_rows_in_a_file_give_the_values_of_whole_ones(tmp_path: Path) -> None:
    read = expressions_read(SUITE, SUITE.options)
    assert read is not None
    whole, metrics = guard_frame(), SUITE.all_metrics(SUITE.options)
    rows = narrow(whole.lazy(), texts_read(whole, read))
    assert [name for name, kind in rows.collect_schema().items() if kind == pl.String] == []
    rows.sink_parquet(tmp_path / "rows.parquet")
    measured = measure(pl.scan_parquet(tmp_path / "rows.parquet"), metrics, cluster="cluster")
    measured = measured.with_columns(pl.col("model", "judge").cast(pl.String))
    assert_frame_equal(measured, measure(whole, metrics, cluster="cluster"), rel_tol=1e-12)


def test_a_text_that_is_read_as_a_text_stays_one() -> None:
    rows = pl.DataFrame({"answer": ["12", "7"], "label": ["a", "b"], "sample_hash": ["x", "y"]})
    kept = texts_read(rows, [pl.col("answer").cast(pl.Int64) > 8, pl.col("label") == "a"])
    types = dict(narrow(rows.lazy(), kept).collect_schema())
    assert types == {"answer": pl.String, "label": pl.Categorical, "sample_hash": pl.UInt64}


def test_a_report_lists_the_first_mistakes_and_counts_all(guard: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reports.build_report(guard.lake, guard.run_id)
    assert sum(whole.wrong.values()) > 2
    assert whole.results is not None
    monkeypatch.setattr(reports, "MISTAKES_SHOWN", 1)
    first = reports.build_report(guard.lake, guard.run_id)
    assert first.wrong == whole.wrong
    assert first.results is not None
    assert_frame_equal(first.results, whole.results.unique(["model"], keep="first", maintain_order=True))
