"""The suite's section of the configuration: weights of SUI, weight sets that test its ranking, panels.

`sui_calibration_unstated` settles a case that can be read in two ways. Where no confidence was stated, calibration is
undefined. To share out its weight among the other components ("left_out") treats it as any undefined component, and
makes silence worth as much as the rest of the index: a model that does well elsewhere gains by stating nothing. The
default, 0.5, is what an uninformed guess would get, and what the recorded results hold that SUI is tested against. A
snapshot of a model that stated no confidence warns of it. Like the weights, it is part of the metric definition.
"""

from collections.abc import Mapping
from typing import Any

from core.errors import ConfigurationError

COMPONENTS = ("f2", "target_detection_rate", "finding_precision", "avg_reasoning", "calibration")
FEWEST_SETS = 5

Weights = Mapping[str, float]


def _weights(*values: float) -> dict[str, float]:
    return dict(zip(COMPONENTS, values, strict=True))


DEFAULTS: Mapping[str, Any] = {
    "sui_weights": _weights(0.25, 0.25, 0.15, 0.25, 0.10),
    "sui_weight_sets": {
        "balanced": _weights(0.2, 0.2, 0.2, 0.2, 0.2),
        "detection": _weights(0.50, 0.20, 0.10, 0.10, 0.10),
        "target": _weights(0.10, 0.50, 0.10, 0.20, 0.10),
        "precision": _weights(0.15, 0.20, 0.45, 0.10, 0.10),
        "reasoning": _weights(0.10, 0.20, 0.10, 0.50, 0.10),
        "calibration": _weights(0.15, 0.20, 0.10, 0.15, 0.40),
    },
    # What calibration counts in SUI where no confidence was stated: a number, or "left_out" to share out its weight.
    "sui_calibration_unstated": 0.5,
    # How the answers of a panel's judges become the panel's: MAJORITY where nothing is said, or DAWID_SKENE.
    "aggregation": None,
}
MAJORITY, DAWID_SKENE = "majority", "dawid_skene"


def sui_weights(options: Mapping[str, Any]) -> dict[str, float]:
    """Read the weights of SUI's components. Raises ConfigurationError where they are not valid."""
    return _checked("sui_weights", options["sui_weights"])


def sui_weight_sets(options: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Read the weight sets of `sui_rank_stability`. Raises ConfigurationError where they are too few or not valid."""
    sets = options["sui_weight_sets"]
    if not isinstance(sets, Mapping) or len(sets) < FEWEST_SETS:
        raise ConfigurationError(f"solidity_audit.sui_weight_sets must name at least {FEWEST_SETS} sets of weights")
    return {str(name): _checked(f"sui_weight_sets.{name}", given) for name, given in sets.items()}


def calibration_unstated(options: Mapping[str, Any]) -> float | None:
    """Read the value of calibration in SUI where no confidence was stated; None where it is left out."""
    given = options["sui_calibration_unstated"]
    if given == "left_out":
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ConfigurationError('solidity_audit.sui_calibration_unstated must be 0 to 1, or "left_out"')
    return float(given)


def aggregation(options: Mapping[str, Any]) -> str:
    """Read how the answers of a panel's judges become the panel's. Raises ConfigurationError for an unknown way."""
    given = options.get("aggregation") or MAJORITY
    if given not in (MAJORITY, DAWID_SKENE):
        raise ConfigurationError(f'solidity_audit.aggregation must be "{MAJORITY}" or "{DAWID_SKENE}"')
    return str(given)


def _checked(where: str, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping) or set(given) != set(COMPONENTS):
        raise ConfigurationError(f"solidity_audit.{where} must give a weight to each of {', '.join(COMPONENTS)}")
    numbers = all(not isinstance(w, bool) and isinstance(w, int | float) and 0 <= w < 1e6 for w in given.values())
    if not numbers or sum(given.values()) <= 0:
        raise ConfigurationError(f"solidity_audit.{where} must be weights of 0 or more, not all of them 0")
    return {name: float(given[name]) for name in COMPONENTS}
