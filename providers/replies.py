"""Reads what LiteLLM returns, and makes a Reply of it; an answer that is no reply is a malformed response."""

from dataclasses import dataclass
from typing import Any

from core.redaction import KnownKeys
from providers.cost import Tokens, cost_usd
from providers.failures import AttemptFailed
from providers.request import Reply
from providers.routes import Route

_LARGEST_COUNT = 2**53 - 1  # a larger count is nonsense, and no column could hold it


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """A provider's answer as it came: not priced yet, and our keys not removed yet."""

    text: Any
    finish_reason: Any
    model: Any
    tokens: Tokens


def read_response(response: Any, route: Route) -> ProviderAnswer:
    """Read a `litellm.ModelResponse`. Reasoning content is no part of the text.

    Raises AttemptFailed (malformed_response) where there is no message in it.
    """
    tokens = _tokens(getattr(response, "usage", None))
    choices = getattr(response, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        cost = cost_usd(route.model, tokens, route.price)
        raise AttemptFailed("malformed_response", "the reply holds no choices with a message", cost_usd=cost)
    reason = getattr(choices[0], "finish_reason", None)
    return ProviderAnswer(_content(message), reason, getattr(response, "model", None), tokens)


def reply_of(answered: ProviderAnswer, route: Route, keys: KnownKeys) -> Reply:
    """Build the Reply of an answer: priced, and without our keys."""
    tokens = answered.tokens
    return Reply(
        text=_text(answered.text, keys),
        finish_reason=_text(answered.finish_reason, keys),
        model_reported=_text(answered.model, keys),
        input_tokens=tokens.input,
        cached_input_tokens=tokens.cached_input,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        cost_usd=cost_usd(route.model, tokens, route.price),
    )


def cost_of_unread(body: Any, route: Route) -> float | None:
    """Compute what an unreadable answer cost, by the usage that it states under OpenAI's or Anthropic's names."""
    usage = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(usage, dict):
        return None
    counts = [
        usage.get(f"{new}_tokens", usage.get(f"{old}_tokens"))
        for new, old in (("input", "prompt"), ("output", "completion"))
    ]
    counted = [count if _is_count(count) else None for count in counts]
    return cost_usd(route.model, Tokens(*counted), route.price)


def known(tokens: Tokens) -> Tokens:
    """Return the counts of an answer; LiteLLM fills in zeros where the provider sent none, and those are unknown."""
    return tokens if tokens.input or tokens.output else Tokens()


def _content(message: Any) -> Any:
    """Read the content; where there is none, the refusal, which OpenAI sends in a field of its own."""
    content = getattr(message, "content", None)
    return (getattr(message, "provider_specific_fields", None) or {}).get("refusal") if content is None else content


def _text(value: Any, keys: KnownKeys) -> str | None:
    """Make a string that any table or file can hold, without our keys; lone surrogates, no characters, become `?`."""
    return keys.redact(value).encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else None


def _tokens(usage: Any) -> Tokens:
    """Read the counts in a usage block."""
    input_details = getattr(usage, "prompt_tokens_details", None)
    output_details = getattr(usage, "completion_tokens_details", None)
    return known(
        Tokens(
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
            _count(input_details, "cached_tokens"),
            _count(output_details, "reasoning_tokens"),
            _count(input_details, "cache_creation_tokens"),
        )
    )


def _count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if _is_count(value) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT
