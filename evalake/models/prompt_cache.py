"""Marks the beginning of a prompt that a conversation's next turn shares, for providers that cache only marked ones.

The mark is added when a request is sent, and is no part of it: an answer is the same wherever its prompt was read from.
Most providers find the shared beginning themselves; Claude needs a mark after it, wherever it runs.
"""

from collections.abc import Mapping
from typing import Any

from evalake.models.cost import entry_of
from evalake.models.request import Request

TOLD = frozenset({"anthropic", "bedrock", "openrouter", "vertex_ai"})  # where Claude runs
MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}  # kept for five minutes; each use prolongs it
_STABLE = ("system", "user")  # the first message of each role is the same in every turn


def messages_of(request: Request, provider: str) -> list[dict[str, Any]]:
    """Copy the request's messages as they are sent, marked where the request asks for it and the provider needs it."""
    messages: list[dict[str, Any]] = [dict(message) for message in request.messages]
    if not request.cache_prompt or provider not in TOLD or not _takes_marks(request.model):
        return messages
    for role in _STABLE:
        first = next((message for message in messages if message["role"] == role and message["content"]), None)
        if first is not None:  # of an empty text, providers refuse the mark
            first["content"] = [{"type": "text", "text": first["content"], **MARK}]
    return messages


def _takes_marks(model: str) -> bool:
    """Tell whether it is a Claude that takes marks, as far as LiteLLM's table tells; old ones may refuse them."""
    entry = entry_of(model)
    return "claude" in model.lower() and (entry is None or bool(entry.get("supports_prompt_caching")))
