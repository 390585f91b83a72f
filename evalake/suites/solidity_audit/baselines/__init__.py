"""Rule-based auditors and judges: the bar that a model must beat, and what a trivial one gets."""

import json
from collections.abc import Mapping
from importlib import import_module

from evalake.models.request import Baseline


def _lazily(module: str) -> Baseline:
    """Build the baseline that a module of this package answers as; it is imported by the first question."""
    return lambda messages: str(import_module(f"{__name__}.{module}").answer(messages))


def _always(verdict: str) -> Baseline:
    """Build a baseline that answers every contract with one verdict, confidence 1 and no finding."""
    return lambda _: json.dumps({"verdict": verdict, "confidence": 1.0, "findings": []})


BASELINES: Mapping[str, Baseline] = {
    "solidity-patterns": _lazily("solidity_patterns"),
    "always-vulnerable": _always("vulnerable"),
    "always-safe": _always("safe"),
    "overlap-judge": _lazily("overlap_judge"),
    "wording-judge": _lazily("wording_judge"),
}
