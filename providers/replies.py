"""Reads what LiteLLM hands back into a Reply; whatever a reply should not be is a malformed response."""

from typing import Any

from providers.cost import Tokens, cost_usd
from providers.failures import AttemptFailed
from providers.redaction import redact_known
from providers.request import Reply
from providers.routes import Route

_LARGEST_COUNT = 2**53 - 1  # a larger count is nonsense, and no column could hold it


def read_reply(response: Any, route: Route, attempts: int, latency_ms: float) -> Reply:
    """The Reply in a LiteLLM response. Reasoning content is no part of the text.

    Raises AttemptFailed (malformed_response) where there is no message in it.
    """
    choices = getattr(response, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        raise AttemptFailed("malformed_response", "the reply holds no choices with a message")
    tokens = _tokens(getattr(response, "usage", None))
    return Reply(
        text=_text(_said(message)),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
        model_reported=_text(getattr(response, "model", None)),
        input_tokens=tokens.input,
        cached_input_tokens=tokens.cached_input,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        cost_usd=cost_usd(route.model, tokens, route.price),
        latency_ms=latency_ms,
        attempts=attempts,
    )


def _said(message: Any) -> Any:
    """The content; where there is none, the refusal, which OpenAI sends in a field of its own."""
    content = getattr(message, "content", None)
    return (getattr(message, "provider_specific_fields", None) or {}).get("refusal") if content is None else content


def _text(value: Any) -> str | None:
    """A string that every table and file can hold, without our keys; lone surrogates, no characters, become `?`."""
    return redact_known(value).encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else None


def _tokens(usage: Any) -> Tokens:
    """The counts in a usage block; LiteLLM fills in zeros where the provider sent none, and those are unknown."""
    input_tokens, output_tokens = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not input_tokens and not output_tokens:
        return Tokens()
    input_details = getattr(usage, "prompt_tokens_details", None)
    output_details = getattr(usage, "completion_tokens_details", None)
    return Tokens(
        input=input_tokens,
        output=output_tokens,
        cached_input=_count(input_details, "cached_tokens"),
        reasoning=_count(output_details, "reasoning_tokens"),
        cache_written=_count(input_details, "cache_creation_tokens"),
    )


def _count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT else None
