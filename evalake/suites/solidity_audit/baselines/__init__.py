"""Rule-based auditors and judges: the bar that a model must beat, and what a trivial one gets."""

import json
from collections.abc import Mapping

from evalake.models.request import Baseline
from evalake.suites.solidity_audit.baselines.judges import judge_by_overlap, judge_by_wording
from evalake.suites.solidity_audit.baselines.patterns import audit_by_patterns


def _always(verdict: str) -> Baseline:
    """Build a baseline that answers every contract with one verdict, confidence 1 and no finding."""
    return lambda _: json.dumps({"verdict": verdict, "confidence": 1.0, "findings": []})


BASELINES: Mapping[str, Baseline] = {
    "solidity-patterns": audit_by_patterns,
    "always-vulnerable": _always("vulnerable"),
    "always-safe": _always("safe"),
    "overlap-judge": judge_by_overlap,
    "wording-judge": judge_by_wording,
}
