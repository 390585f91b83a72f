"""The embedded models by name; a suite adds a line for each of its own."""

import json
from collections.abc import Callable, Mapping, Sequence

Messages = Sequence[Mapping[str, str]]
Baseline = Callable[[Messages], str]  # the messages of a request -> the text of the reply

_OPENING, _CLOSING = "<command>\n", "\n</command>"


class BaselineRefusedError(Exception):
    """The messages hold nothing that the baseline could judge."""


def command_of(messages: Messages) -> str:
    """The command in the last user message: between the first `<command>` line and the last `</command>` line.

    Raises BaselineRefusedError where there is none.
    """
    prompt = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    _, opening, rest = prompt.partition(_OPENING)
    command, closing, _ = rest.rpartition(_CLOSING)
    if not opening or not closing:
        raise BaselineRefusedError("the last user message holds no <command> block to judge")
    return command


def _verdict(action: str, reason: str, confidence: float) -> str:
    return json.dumps({"action": action, "reason": reason, "confidence": confidence}, ensure_ascii=False)


def _shell_patterns(messages: Messages) -> str:
    from providers.baselines.shell_patterns import guard

    decision = guard(command_of(messages))
    return _verdict(decision.action, decision.reason, decision.confidence)


def _rubric_judge(messages: Messages) -> str:
    from providers.baselines.rubric_judge import judge

    return judge(messages)


def _solidity_patterns(messages: Messages) -> str:
    from providers.baselines.solidity_patterns import answer

    return _or_refuse(answer(messages), "the last user message holds no contract to audit")


def _overlap_judge(messages: Messages) -> str:
    from providers.baselines.overlap_judge import answer

    return _or_refuse(answer(messages), "the user message holds no audit to judge")


def _or_refuse(text: str | None, reason: str) -> str:
    if text is None:
        raise BaselineRefusedError(reason)
    return text


BASELINES: Mapping[str, Baseline] = {
    "shell-patterns": _shell_patterns,
    "always-block": lambda messages: _verdict("BLOCK", "blocks every command", 1.0),
    "always-allow": lambda messages: _verdict("ALLOW", "allows every command", 1.0),
    "solidity-patterns": _solidity_patterns,
    "overlap-judge": _overlap_judge,
    "rubric-judge": _rubric_judge,
}
