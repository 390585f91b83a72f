"""Rule-based shell guards: the bar that a model must beat."""

import json
from collections.abc import Mapping

from evalake.models.request import Baseline, BaselineRefusedError, Messages, Revised
from evalake.sdk.sample import read_delimited
from evalake.suites.command_guard.baselines.guard import guard as judge_command

_OPENING, _CLOSING = "<command>\n", "\n</command>"


def command_of(messages: Messages) -> str:
    """Find the command in the last user message: the marked block, else from first `<command>` to last `</command>`.

    Raises:
        BaselineRefusedError: There is none.
    """
    prompt = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    before, opening, rest = prompt.partition(_OPENING)
    # A command in a plain block may itself hold a marked one: whichever begins first is ours
    if (marked := read_delimited("command", prompt)) is not None and "<<<command " in before:
        return marked
    command, closing, _ = rest.rpartition(_CLOSING)
    if not opening or not closing:
        raise BaselineRefusedError("the last user message holds no <command> block to judge")
    return command


def _verdict(action: str, reason: str, confidence: float) -> str:
    return json.dumps({"action": action, "reason": reason, "confidence": confidence}, ensure_ascii=False)


def _shell_patterns(messages: Messages) -> str:
    decision = judge_command(command_of(messages))
    return _verdict(decision.action, decision.reason, decision.confidence)


BASELINES: Mapping[str, Baseline] = {
    "shell-patterns": Revised(_shell_patterns, "4"),
    "always-block": lambda messages: _verdict("BLOCK", "blocks every command", 1.0),
    "always-allow": lambda messages: _verdict("ALLOW", "allows every command", 1.0),
}
