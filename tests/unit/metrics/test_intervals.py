"""Intervals from formulas, against statsmodels and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalake.metrics.intervals import student_t, wilson


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_that_of_statsmodels_and_holds_the_proportion(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = wilson(k, n)
    expected_low, expected_high = proportion_confint(k, n, method="wilson")
    assert float(low) == pytest.approx(expected_low, abs=1e-12)
    assert float(high) == pytest.approx(expected_high, abs=1e-12)
    assert 0 <= low <= k / n <= high <= 1


def test_wilson_ends_exactly_at_the_limits_and_is_unknown_without_trials() -> None:
    low, high = wilson([0, 10, 0], [10, 10, 0])
    assert low[0] == 0
    assert high[1] == 1
    assert np.isnan(low[2])
    assert np.isnan(high[2])


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=2, max_size=30))
def test_student_t_is_that_of_scipy(values: list[float]) -> None:
    sample = np.array(values)
    low, high = student_t(sample.mean(), sample.std(ddof=1) / np.sqrt(len(sample)), len(sample))
    with np.errstate(all="ignore"):
        error = sample.std(ddof=1) / np.sqrt(len(sample))
    reach = stats.t.ppf(0.975, len(sample) - 1) * error
    assert float(high - low) == pytest.approx(2 * reach, rel=1e-9, abs=1e-6)
    assert low <= sample.mean() <= high


def test_student_t_needs_two_values() -> None:
    assert np.isnan(student_t(3.0, 0.0, 1)).all()
