"""Limits that decide, over few clusters of unequal size."""

import numpy as np
import polars as pl
import pytest

from benchmarks.coverage.conclusions import decisions
from benchmarks.coverage.populations import Structure, unequal
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Mean, Rate
from evalake.metrics.intervals import student
from evalake.metrics.limits import measure_exact
from evalake.metrics.variance import pooled_within
from evalake.reports.ranking import Verdict, decide

TIMES = 500


@pytest.mark.parametrize(
    ("name", "rate", "structure", "size"),
    [
        ("standard deviation", 0.5, unequal(20, 0.5, heavy=False), 80),
        ("standard deviation", 0.5, unequal(50, 0.9, heavy=True), 100),
        ("macro average", 0.9, Structure("clusters of 5", together=5, alike=0.9), 100),
    ],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_decisions_over_few_clusters_err_as_rarely_as_promised(
    name: str, rate: float, structure: Structure, size: int
) -> None:
    decided = list(decisions(rate, size, structure, TIMES, (name,)))
    assert [each for each in decided if not each.kept] == []


def test_unequal_clusters_count_as_so_many_equal_ones() -> None:
    """29 samples in one cluster and one in each of 29 others tell as much as 4 equal units do (Kish 1965)."""
    cluster = np.append(np.zeros(29, np.int64), np.arange(1, 30))
    frame = pl.DataFrame({"model": "m", "cluster": cluster, "right": True}).with_columns(judge=pl.lit(None, pl.String))
    (row,) = measure_exact(frame, [Metric("rate", Rate(pl.col("right")))]).iter_rows(named=True)
    assert row["units"] == int(58**2 / (29**2 + 29)) == 3
    known = decide(1.0, 0.9, 1.0, 30, 0.85, alike=row["units"])
    assert known.verdict is Verdict.UNDECIDED
    unequal_sizes = "30 units of unequal size tell as much as 3 equal ones"
    assert known.reason is not None
    assert known.reason.startswith(f"{unequal_sizes}: fewer than 20 units never pass; `evalake settle`")
    assert known.more_samples is None  # the number depends on the sizes of the next clusters
    assert decide(1.0, 0.9, 1.0, 30, 0.85, alike=row["units"], fewest=3).verdict is Verdict.PASS


def test_limits_of_a_mean_rest_on_the_jackknife() -> None:
    """A cluster with much of the weight drags the mean to itself: leaving it out tells how much it varies."""
    rng = np.random.default_rng(2)
    sizes = np.array([30, *[3] * 30])
    cluster = np.repeat(np.arange(31), sizes)
    values = rng.normal(size=31)[cluster]
    frame = pl.DataFrame({"model": "m", "cluster": cluster, "x": values}).with_columns(judge=pl.lit(None, pl.String))
    (row,) = measure_exact(frame, [Metric("mean", Mean(pl.col("x")))]).iter_rows(named=True)
    without = np.array([values[cluster != each].mean() for each in range(31)])
    se = np.sqrt(30 / 31 * ((without - without.mean()) ** 2).sum())
    t = float(student(120**2 / (sizes**2).sum()))
    assert row["ci_low"] <= values.mean() - t * se + 1e-9
    assert row["ci_high"] >= values.mean() + t * se - 1e-9


def test_a_deviation_of_repeats_that_rests_on_few_large_differences_is_marked() -> None:
    """One repeat in a hundred differs by 60: of 50 sessions most samples have none, and limits miss the truth."""
    rng = np.random.default_rng(3)
    rare = {f"rare {n}": np.where(rng.random((n, 3)) < 0.01, 20.0, rng.normal(85, 2, (n, 3))) for n in (50, 200)}
    alike = {"few": rng.normal(85, 2, (50, 3)), "many": rng.normal(85, 2, (400, 3))}
    parts = [
        pl.DataFrame({"model": name, "cluster": np.repeat(np.arange(len(each)), 3), "x": each.ravel()})
        for name, each in (rare | alike).items()
    ]
    frame = pl.concat(parts).with_columns(judge=pl.lit(None, pl.String))
    measured = measure(frame, [Metric("sd", pooled_within(pl.col("x"), ("model", "cluster")))], cluster="cluster")
    assert {*measured.filter("reliable")["model"]} == {"many"}
