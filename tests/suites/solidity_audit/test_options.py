"""The suite's options: weights and ways of aggregation that cannot be are refused in a sentence."""

from typing import Any

import pytest

from core.errors import ConfigurationError
from suites.solidity_audit.metrics import metrics
from suites.solidity_audit.options import COMPONENTS, DEFAULTS


def test_an_aggregation_that_there_is_not_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigurationError, match='"majority" or "dawid_skene"'):
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
        {"sui_calibration_unstated": 2},
        {"sui_calibration_unstated": "half"},
    ],
)
def test_weights_that_cannot_be_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="solidity_audit"):
        metrics({**DEFAULTS, **broken})
