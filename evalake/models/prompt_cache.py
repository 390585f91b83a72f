"""Marks the shared beginning of a conversation's prompts for providers that cache only marked prompts.

Claude needs a mark; most other providers find the shared beginning themselves. The mark is not part of the prompt hash.
"""

from collections.abc import Mapping
from typing import Any

from evalake.models.cost import entry_of
from evalake.models.request import Request

TOLD = frozenset({"anthropic", "bedrock", "openrouter", "vertex_ai"})  # providers of Claude
MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}  # cached for five minutes after each use
_STABLE = ("system", "user")  # the first message of each role is the same in every turn


def messages_of(request: Request, provider: str) -> list[dict[str, Any]]:
    """Copy the request's messages, with marks where the request wants caching and the provider needs marks."""
    messages: list[dict[str, Any]] = [dict(message) for message in request.messages]
    if not request.cache_prompt or provider not in TOLD or not _takes_marks(request.model):
        return messages
    for role in _STABLE:
        first = next((message for message in messages if message["role"] == role and message["content"]), None)
        if first is not None:
            first["content"] = [{"type": "text", "text": first["content"], **MARK}]
    return messages


def _takes_marks(model: str) -> bool:
    """Tell whether the model is a Claude with prompt caching, by LiteLLM's table."""
    entry = entry_of(model)
    return "claude" in model.lower() and (entry is None or bool(entry.get("supports_prompt_caching")))
