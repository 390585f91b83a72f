"""Rule-based auditors and judges: the bar that a model must beat, and what a trivial one gets."""

import json
from collections.abc import Mapping

from providers.baselines import Baseline, Messages


def _solidity_patterns(messages: Messages) -> str:
    from suites.solidity_audit.baselines.solidity_patterns import answer

    return answer(messages)


def _overlap_judge(messages: Messages) -> str:
    from suites.solidity_audit.baselines.overlap_judge import answer

    return answer(messages)


def _wording_judge(messages: Messages) -> str:
    from suites.solidity_audit.baselines.wording_judge import answer

    return answer(messages)


def _always(verdict: str) -> Baseline:
    """Build a baseline that answers every contract with one verdict, confidence 1 and no finding."""
    return lambda _: json.dumps({"verdict": verdict, "confidence": 1.0, "findings": []})


BASELINES: Mapping[str, Baseline] = {
    "solidity-patterns": _solidity_patterns,
    "always-vulnerable": _always("vulnerable"),
    "always-safe": _always("safe"),
    "overlap-judge": _overlap_judge,
    "wording-judge": _wording_judge,
}
