"""A rule-based auditor and a rule-based judge: the bar that a model must beat."""

from collections.abc import Mapping

from providers.baselines import Baseline, BaselineRefusedError, Messages


def _solidity_patterns(messages: Messages) -> str:
    from suites.solidity_audit.baselines.solidity_patterns import answer

    return _or_refuse(answer(messages), "the last user message holds no contract to audit")


def _overlap_judge(messages: Messages) -> str:
    from suites.solidity_audit.baselines.overlap_judge import answer

    return _or_refuse(answer(messages), "the user message holds no audit to judge")


def _or_refuse(text: str | None, reason: str) -> str:
    if text is None:
        raise BaselineRefusedError(reason)
    return text


BASELINES: Mapping[str, Baseline] = {"solidity-patterns": _solidity_patterns, "overlap-judge": _overlap_judge}
