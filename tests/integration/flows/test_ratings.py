"""People's ratings of sessions reach the snapshots of a run, and nothing else of it changes."""

from pathlib import Path

import polars as pl
import pytest
from scipy.stats import pearsonr

from evalake.contracts.tables import METRIC_SNAPSHOTS, SNAPSHOTS
from evalake.flows.evaluate import evaluate
from evalake.flows.snapshot import snapshot
from evalake.server.scoring.statistics import Ratings
from evalake.storage.lake import Lake
from evalake.suites.session_review.contract import RESULTS

OURS = ("judge_human_pearson", "judge_human_kappa_bands")


def test_a_rating_of_a_session_is_in_the_next_snapshot(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    evaluate(suite="session_review", lake=lake.uri)
    rows = lake.frame(RESULTS).collect().sort("sample_id").to_dicts()
    before = lake.frame(SNAPSHOTS).collect()["snapshot_id"].item()
    ratings = Ratings(lake)
    given = {row["session_id"]: float(10 * place) for place, row in enumerate(rows, start=1)}
    for row in rows:
        ratings.put(row, given[row["session_id"]], None, "ann")
    after = snapshot(lake=lake.uri)["session_review"]

    values = lake.frame(METRIC_SNAPSHOTS).collect().drop("row_key", "measured_at")
    old, new = (values.filter(snapshot_id=each).drop("snapshot_id") for each in (before, after))
    unknown = old.filter(pl.col("metric").is_in(OURS))
    assert unknown.select("value", "n").rows() == [(None, 0)] * len(OURS)
    correlation = new.filter(metric="judge_human_pearson").row(0, named=True)
    expected = pearsonr([row["total_score"] for row in rows], list(given.values())).statistic
    assert (correlation["value"], correlation["n"]) == (pytest.approx(expected), len(rows))
    apart = new.filter(metric="judge_human_difference_score").row(0, named=True)
    expected = sum(abs(row["total_score"] - given[row["session_id"]]) for row in rows) / len(rows)
    assert (apart["value"], apart["n"]) == (pytest.approx(expected), len(rows))
    others = ~pl.col("metric").str.contains("_human_")
    assert new.filter(others).drop("se", "ci_low", "ci_high").equals(old.filter(others).drop("se", "ci_low", "ci_high"))
