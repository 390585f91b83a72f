"""A metric is null where it is undefined, its interval is ordered, its denominator never below zero."""

from evalake.contracts.tables.metrics import METRIC_SNAPSHOTS
from tests.unit.contracts.tables.rows import broken_by


def test_an_undefined_metric_is_null_of_nothing() -> None:
    assert broken_by(METRIC_SNAPSHOTS, value=None, n=0, se=None, ci_low=None, ci_high=None) == []
    assert broken_by(METRIC_SNAPSHOTS, value=float("nan")) == ["value_finite"]
    assert broken_by(METRIC_SNAPSHOTS, n=-1) == ["n_not_negative"]
    assert broken_by(METRIC_SNAPSHOTS, se=-1.0) == ["se_not_negative"]


def test_an_interval_does_not_end_before_it_begins() -> None:
    assert broken_by(METRIC_SNAPSHOTS, ci_low=0.2, ci_high=0.2) == []
    assert broken_by(METRIC_SNAPSHOTS, ci_low=0.3, ci_high=0.2) == ["interval_ordered"]
