"""The suite's options: weights and ways of aggregation that cannot be are refused in a sentence."""

from typing import Any

import pytest

from evalake.core.errors import ConfigurationError
from evalake.suites.solidity_audit.metrics import metrics
from evalake.suites.solidity_audit.truth import (
    COMPONENTS,
    DEFAULTS,
    FEWEST_SETS,
    aggregation,
    calibration_unstated,
    sui_weight_sets,
    sui_weights,
)


def test_an_aggregation_that_there_is_not_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigurationError, match="majority, strict, dawid_skene; it is 'mean'"):
        metrics({**DEFAULTS, "aggregation": "mean"})


@pytest.mark.parametrize(
    "broken",
    [
        {"sui_weights": {"f2": 1.0}},
        {"sui_weights": dict.fromkeys(COMPONENTS, 0.0)},
        {"sui_weights": dict.fromkeys(COMPONENTS, -1.0)},
        {"sui_weights": dict.fromkeys(COMPONENTS, "a")},
        {"sui_weights": None},
        {"sui_weight_sets": {name: dict.fromkeys(COMPONENTS, 1.0) for name in "abcd"}},
        {"sui_weight_sets": {name: {"f2": 1.0} for name in "abcde"}},
        {"panel": ["alone"]},
        {"panel": "a,b"},
        {"sui_calibration_unstated": 2},
        {"sui_calibration_unstated": "half"},
    ],
)
def test_weights_that_cannot_be_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="solidity_audit"):
        metrics({**DEFAULTS, **broken})


def test_the_defaults_are_weights_and_sets_of_them() -> None:
    weights = sui_weights(DEFAULTS)
    assert tuple(weights) == COMPONENTS
    assert sum(weights.values()) == pytest.approx(1)
    sets = sui_weight_sets(DEFAULTS)
    assert len(sets) >= FEWEST_SETS
    assert all(sum(each.values()) == pytest.approx(1) for each in sets.values())
    assert (calibration_unstated(DEFAULTS), aggregation(DEFAULTS)) == (0.5, "majority")


def test_weights_are_numbers_by_component_in_one_order() -> None:
    given = dict.fromkeys(reversed(COMPONENTS), 2)
    assert list(sui_weights({**DEFAULTS, "sui_weights": given}).items()) == [(name, 2.0) for name in COMPONENTS]


@pytest.mark.parametrize(("given", "unstated"), [("left_out", None), (0, 0.0), (1, 1.0), (0.25, 0.25)])
def test_what_silence_counts_is_a_share_or_left_out(given: object, unstated: float | None) -> None:
    assert calibration_unstated({**DEFAULTS, "sui_calibration_unstated": given}) == unstated


@pytest.mark.parametrize("given", [True, -0.1, 1.1, float("nan"), "none", None])
def test_what_silence_cannot_count_is_refused_with_what_it_may(given: object) -> None:
    with pytest.raises(ConfigurationError, match='must be 0 to 1, or "left_out"'):
        calibration_unstated({**DEFAULTS, "sui_calibration_unstated": given})


@pytest.mark.parametrize("weight", [True, float("nan"), float("inf"), None, 1e6])
def test_a_weight_that_is_no_number_of_reason_is_refused(weight: object) -> None:
    with pytest.raises(ConfigurationError, match=r"solidity_audit\.sui_weights must be weights of 0 or more"):
        sui_weights({**DEFAULTS, "sui_weights": dict.fromkeys(COMPONENTS, 1.0) | {"f2": weight}})


@pytest.mark.parametrize(("given", "way"), [(None, "majority"), ("majority", "majority"), ("dawid_skene",) * 2])
def test_words_are_aggregated_by_majority_unless_it_says_otherwise(given: str | None, way: str) -> None:
    assert aggregation({"aggregation": given}) == way
