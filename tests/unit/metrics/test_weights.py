"""Fitting weights to people's ranking: what is recovered, what is not claimed, what is refused."""

from typing import Any

import numpy as np
import pytest

from evalake.core.errors import MetricError
from evalake.metrics.weights import fit_weights

PRESENT = {"a": 0.4, "b": 0.3, "c": 0.3}


def ranking(values: Any, weights: Any) -> list[float]:
    """Ranks by the weighted sum, 1 the best."""
    return [float(rank) for rank in 1 + np.argsort(np.argsort(-(np.asarray(values) @ np.asarray(weights))))]


def components(values: Any) -> dict[str, list[float | None]]:
    return dict(zip("abc", np.asarray(values).T.tolist(), strict=True))


@pytest.mark.slow
def test_weights_that_people_go_by_are_recovered_from_many_models() -> None:
    values = np.random.default_rng(1).random((60, 3))
    fit = fit_weights(components(values), ranking(values, [0.1, 0.7, 0.2]), PRESENT, seed=1)
    assert fit.agreeing / fit.pairs > 0.99
    assert fit.weights == {
        name: pytest.approx(weight, abs=0.03) for name, weight in zip("abc", (0.1, 0.7, 0.2), strict=True)
    }
    assert sum(fit.weights.values()) == pytest.approx(1.0, abs=1e-3)
    assert fit.predicted is not None
    assert fit.predicted > 0.95
    assert fit.spearman == pytest.approx(1.0, abs=0.01)
    assert "far too little" not in fit.support


def test_weights_that_agree_already_are_kept_and_little_data_is_called_so() -> None:
    values = [[0.9, 0.8, 0.9], [0.5, 0.5, 0.4], [0.1, 0.2, 0.3]]
    fit = fit_weights(components(values), [1, 2, 3], PRESENT, seed=1)
    assert fit.weights == PRESENT
    assert fit.agreeing == fit.agreeing_before == fit.pairs == 3
    assert all(fit.lowest[name] < 0.05 and fit.highest[name] > 0.9 for name in PRESENT), "any weights would do"
    assert "far too little" in fit.support
    assert "3 models give 2 independent comparisons for 2 free weights" in fit.support
    assert fit.predicted is None


def test_a_ranking_by_nothing_measured_is_not_predicted() -> None:
    rng = np.random.default_rng(4)
    values = rng.random((12, 3))
    fit = fit_weights(components(values), [float(r) for r in rng.permutation(12)], PRESENT, seed=1)
    assert fit.predicted is not None
    assert fit.predicted < 0.75
    assert fit.agreeing >= fit.agreeing_before


def test_an_undefined_component_leaves_the_index() -> None:
    given: dict[str, list[float | None]] = {"a": [0.9, 0.5, 0.1], "b": [None, 0.5, 0.1], "c": [0.9, 0.5, None]}
    assert fit_weights(given, [1, 2, 3], PRESENT, seed=1).agreeing == 3


def test_equal_ranks_are_no_preference() -> None:
    assert fit_weights(components(np.eye(3)), [1, 1, 2], PRESENT, seed=1).pairs == 2


@pytest.mark.parametrize(
    ("given", "ranks", "present", "named"),
    [
        ({"a": [1.0, 0.5], "b": [1.0, 0.5], "c": [1.0, 0.5]}, [1, 2], PRESENT, "at least 3"),
        ({"a": [1.0, 0.5, 0.1]}, [1, 2, 3], PRESENT, "other components"),
        ({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}, [1, 1, 1], PRESENT, "prefers no model"),
        ({"a": [None, 2, 3], "b": [None, 2, 3], "c": [None, 2, 3]}, [1, 2, 3], PRESENT, "no component"),
        ({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}, [1, 2, float("nan")], PRESENT, "not a number"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given: Any, ranks: Any, present: Any, named: str) -> None:
    with pytest.raises(MetricError, match=named):
        fit_weights(given, ranks, present, seed=1)
