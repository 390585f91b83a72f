"""Prompts that a configuration adds to a suite: their parts by prompt type, and their worked examples."""

from collections.abc import Callable, Mapping
from typing import Any

from core.errors import ConfigurationError
from core.prompt_files import PROMPTS
from suites.base.json_in_text import json_object

EXAMPLES = "examples"
"""The part that holds worked examples: a JSON object with `input` and `reply` on each line."""


def own_prompt(options: Mapping[str, Any], prompt_type: str) -> Mapping[str, str]:
    """Look up the configured parts of a prompt type; empty where there are none, as for the suite's own types."""
    parts: Mapping[str, str] = options.get(PROMPTS, {}).get(prompt_type, {})
    return parts


def require_known(prompt_type: str, options: Mapping[str, Any], own: tuple[str, ...]) -> None:
    """Raise ConfigurationError where a prompt type is neither the suite's own nor the configuration's any more."""
    if prompt_type not in own and prompt_type not in options.get(PROMPTS, {}):
        raise ConfigurationError(f"the prompt {prompt_type} is not in the configuration: add it again under {PROMPTS}")


def require_part(parts: Mapping[str, str], name: str) -> None:
    """Raise ConfigurationError where a part is missing that the prompt needs."""
    if name not in parts:
        raise ConfigurationError(f"it needs the part {name}")


def read_examples(parts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read the worked examples, each an input and the reply to it.

    Raises ConfigurationError naming the line that is no example.
    """
    lines = enumerate(parts.get(EXAMPLES, "").splitlines(), start=1)
    return [_example(number, line) for number, line in lines if line.strip()]


def example_messages(parts: Mapping[str, str], ask: Callable[[str], str]) -> list[dict[str, str]]:
    """Write the examples as messages to be sent before the question; `ask` turns an input into a question."""
    messages = []
    for given, reply in read_examples(parts):
        messages += [{"role": "user", "content": ask(given)}, {"role": "assistant", "content": reply}]
    return messages


def _example(number: int, line: str) -> tuple[str, str]:
    match json_object(line) or {}:
        case {"input": str(given), "reply": str(reply), **others} if not others and given.strip() and reply.strip():
            return given, reply
    raise ConfigurationError(
        f'line {number} of {EXAMPLES} is not a JSON object with the texts "input" and "reply", and nothing else'
    )
