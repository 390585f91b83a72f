"""What an interval says of a target, and how many samples are missing."""

from itertools import product

import numpy as np
import polars as pl
import pytest

from evalake.metrics.composite import Composite, Parts
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Rate
from evalake.metrics.intervals import Array
from evalake.reports.ranking import Decision, Verdict, as_judged, decide
from tests.unit.reports.samples import guard_metrics, report
from tests.unit.reports.test_console import printed


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.85, 0.95, Verdict.PASS),
        (0.70, 0.85, Verdict.UNDECIDED),
        (0.70, 0.849, Verdict.FAIL),
        (0.80, 0.90, Verdict.UNDECIDED),
        (None, None, Verdict.UNDECIDED),
    ],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, verdict: Verdict) -> None:
    assert decide(0.84, low, high, 50, 0.85).verdict is verdict


def test_where_less_is_better_the_ends_change_places() -> None:
    assert decide(0.1, 0.05, 0.2, 50, 0.2, higher_is_better=False).verdict is Verdict.PASS
    assert decide(0.3, 0.21, 0.4, 50, 0.2, higher_is_better=False).verdict is Verdict.FAIL
    assert decide(0.2, 0.1, 0.3, 50, 0.2, higher_is_better=False) == Decision(Verdict.UNDECIDED)


def test_missing_samples_follow_from_the_end_towards_the_target() -> None:
    above = decide(0.88, 0.82, 0.92, 100, 0.85)
    assert above == Decision(Verdict.UNDECIDED, 300), "half as wide takes four times as many"
    assert above.text == "UNDECIDED +300"
    assert decide(0.83, 0.70, 0.89, 100, 0.85).more_samples == pytest.approx(800, abs=1)
    assert decide(0.85, 0.8, 0.9, 100, 0.85).text == "UNDECIDED"


def halved(parts: Parts) -> Array:
    return (parts["positive"] + parts["negative"]) / 2  # type: ignore[no-any-return]


SIDES = {"positive": Rate(pl.col("right"), pl.col("positive")), "negative": Rate(pl.col("right"), ~pl.col("positive"))}
JUDGED = [Metric("accuracy", Rate(pl.col("right"))), Metric("balanced accuracy", Composite(halved, SIDES))]


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_model_exactly_at_the_target_rarely_passes_and_a_better_one_never_fails(repeats: int) -> None:
    rng, times, samples, target = np.random.default_rng(repeats), 2_000, 100, 0.85
    shape = times, samples, repeats
    chance = rng.beta(target / 2, (1 - target) / 2, (times, samples, 1)) if repeats > 1 else target
    drawn = rng.random(shape)
    model, sample, _ = (number.ravel() for number in np.indices(shape))
    frame = pl.DataFrame({"model": model, "sample": sample, "right": (drawn < chance).ravel()}).with_columns(
        judge=pl.lit(None, pl.String), cluster=pl.col("sample"), positive=pl.col("sample") % 2 == 0
    )
    better = frame.with_columns(right=pl.col("right") | pl.Series(drawn.ravel() > 0.3))
    for answered, metric in product((frame, better), JUDGED):
        rows = measure(answered, [metric], cluster="cluster").select("value", "ci_low", "ci_high", "units").iter_rows()
        verdicts = [decide(*row, target).verdict for row in rows]
        if answered is frame:
            assert verdicts.count(Verdict.PASS) / times <= 0.03
            assert verdicts.count(Verdict.UNDECIDED) / times >= 0.92
        else:
            assert Verdict.FAIL not in verdicts
            assert verdicts.count(Verdict.PASS) / times >= 0.9


def test_a_report_says_so_in_its_table_and_headline() -> None:
    text = printed(report(guard_metrics("a", 0.88, 0.88)))
    assert "UNDECIDED +72" in text
    assert "0 of 1 reach the target of at least 85.0% score; 1 undecided" in text


def test_a_consensus_of_dawid_and_skene_never_decides_pass() -> None:
    by_consensus, by_majority = "panel:dawid_skene:a+b+c", "panel:a+b+c"
    passed, failed = decide(0.9, 0.86, 0.95, 200, 0.85), decide(0.5, 0.4, 0.6, 200, 0.85)
    assert as_judged(passed, by_consensus).verdict is Verdict.UNDECIDED
    assert as_judged(passed, by_majority) == as_judged(passed, None) == passed
    assert as_judged(failed, by_consensus) == failed
