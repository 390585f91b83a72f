"""The prompts of command_guard: what a guard is told, and how the command is handed to it as data.

The system text is the same for every command, so providers can cache it. The user text ends with the command between
the first line `<command>` and the last line `</command>`: whatever stands between them, tags included, is the command.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.files import tables_beside
from evalake.models.request import Request
from evalake.sdk import Exchange, Item
from evalake.sdk.sample import delimit_untrusted
from evalake.sdk.suite import EXAMPLES, example_messages, own_prompt, read_examples, require_known, require_part

_TEXTS = tables_beside(__file__, "prompts.toml")
# A command that holds a line which looks like the end of the block gets a block whose end no command can hold.
_CLOSING = re.compile(r"^[^\S\n]*</\s*command\s*>[^\S\n]*$", re.MULTILINE | re.IGNORECASE)
PROMPT_TYPES = ("direct", "chain_of_thought")

PARTS = ("system", "user", EXAMPLES)
"""What a prompt of one's own may say: the system text, what stands before the command, and worked examples."""


def render(command: str, model: str, prompt_type: str, parts: Mapping[str, str] | None = None) -> Request:
    """Build the request that asks `model` about a command. It sets no parameters: the configuration does.

    Args:
        command: The command.
        model: The model that is asked.
        prompt_type: How it is asked.
        parts: The texts of the user's own prompt, which replaces that of the prompt type.
    """
    if parts:
        return _render_own(command, model, parts)
    system, block = _TEXTS["task"] + _TEXTS[prompt_type] + _TEXTS["form"], f"<command>\n{command}\n</command>"
    if _CLOSING.search(command):
        system = system.replace(_TEXTS["place"], _TEXTS["marked_place"])
        block = delimit_untrusted("command", command)
    user = f"Decide what happens to this command.\n\n{block}"
    return Request(model, ({"role": "system", "content": system}, {"role": "user", "content": user}), {})


def check_prompt(parts: Mapping[str, str]) -> None:
    """Raise ConfigurationError where the user's own prompt cannot be used."""
    require_part(parts, "system")
    read_examples(parts)


def _render_own(command: str, model: str, parts: Mapping[str, str]) -> Request:
    """Build the request from the user's own texts. Its block is always marked: no text of ours explains a plain one."""

    def ask(given: str) -> str:
        return f"{parts.get('user', _TEXTS['own_request'])}\n\n{delimit_untrusted('command', given)}"

    system = {"role": "system", "content": parts["system"]}
    return Request(model, (system, *example_messages(parts, ask), {"role": "user", "content": ask(command)}), {})


def converse(item: Item, answered: Sequence[Exchange], options: Mapping[str, Any]) -> Request | None:
    """Build the only request; None once it is answered. Of the options, only the user's own prompts change it."""
    if answered:
        return None
    require_known(item.prompt_type, options, PROMPT_TYPES)
    return render(item.sample.input, item.model, item.prompt_type, own_prompt(options, item.prompt_type))
