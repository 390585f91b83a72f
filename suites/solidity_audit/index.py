"""The parts of SUI as a snapshot has them, so that its weights can be fitted to people's ranking of models."""

from collections.abc import Mapping

from suites.base import Index
from suites.solidity_audit.options import sui_weights

REASONING = ("mean_rcir", "mean_ava", "mean_fsv")


def components(metrics: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """Compute a model's parts of SUI from its metrics by name; None where a part is undefined."""
    ece = metrics.get("ece")
    return {
        "f2": metrics.get("f2"),
        "target_detection_rate": metrics.get("target_detection_rate"),
        "finding_precision": metrics.get("finding_precision"),
        "avg_reasoning": _reasoning(metrics),
        "calibration": None if ece is None else 1 - ece,
    }


def _reasoning(metrics: Mapping[str, float | None]) -> float | None:
    """Average the defined means; 0 where vulnerable samples exist and the target was found in none."""
    defined = [value for name in REASONING if (value := metrics.get(name)) is not None]
    if defined:
        return sum(defined) / len(defined)
    return 0.0 if metrics.get("target_detection_rate") == 0 else None


INDEX = Index(components, sui_weights)
