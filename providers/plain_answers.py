"""Reads plain answers in OpenAI's form; one that has more in it than a text and its tokens is left to LiteLLM.

LiteLLM makes some thirty objects of every answer. A test holds that what is read here is what LiteLLM reads.
"""

import json
from collections.abc import Set
from typing import Any

from providers.cost import Tokens
from providers.replies import ProviderAnswer, known

# The fields of each object of a plain answer, and those that may be there as long as they hold nothing.
_ANSWER = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint"})
_ANSWER_EMPTY = frozenset({"prompt_logprobs", "prompt_token_ids", "kv_transfer_params"})
_CHOICE = frozenset({"index", "message", "finish_reason"})
_CHOICE_EMPTY = frozenset({"logprobs", "stop_reason", "token_ids"})
_MESSAGE = frozenset({"role", "content"})
_MESSAGE_EMPTY = frozenset({"refusal", "audio", "function_call", "reasoning_content", "reasoning"})
_MESSAGE_LISTS = frozenset({"annotations", "tool_calls"})
_USAGE = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_USAGE_DETAILS = frozenset({"prompt_tokens_details", "completion_tokens_details"})
_INPUT = frozenset({"cached_tokens", "audio_tokens"})
_OUTPUT = frozenset({"reasoning_tokens", "audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"})

_TEXTS = ("id", "object", "service_tier", "system_fingerprint")  # or null
_ENDS = ("stop", "length")  # which LiteLLM hands on as they are
_THOUGHTS = "<think"  # LiteLLM takes what stands in such a tag out of the text
_LARGEST_COUNT = 2**31


def read_plain(body: bytes) -> ProviderAnswer | None:
    """Read the body of an answer; None where LiteLLM may make something else of it."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not _has_only(answer, _ANSWER, _ANSWER_EMPTY) or type(answer.get("model")) is not str:
        return None
    choices = answer.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(answer.get("created")) is not int:
        return None
    if not all(type(answer.get(name)) in (str, type(None)) for name in _TEXTS):
        return None
    text, tokens = _text(choices[0]), _tokens(answer.get("usage"))
    if text is None or tokens is None:
        return None
    return ProviderAnswer(text, choices[0]["finish_reason"], answer["model"], tokens)


def _text(choice: Any) -> str | None:
    """Read the text of a choice; None where it is not a plain one."""
    if not _has_only(choice, _CHOICE, _CHOICE_EMPTY) or choice.get("finish_reason") not in _ENDS:
        return None
    message = choice.get("message")
    if not _has_only(message, _MESSAGE, _MESSAGE_EMPTY, _MESSAGE_LISTS) or message.get("role") != "assistant":
        return None
    text = message.get("content")
    return text if type(text) is str and text and _THOUGHTS not in text else None


def _tokens(usage: Any) -> Tokens | None:
    """Read the counts of an answer, unknown where it states none; None where they are not plain ones."""
    if usage is None:
        return Tokens()
    if not _has_only(usage, _USAGE | _USAGE_DETAILS, frozenset()):
        return None
    details = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    if not all(_is_count(usage.get(name)) for name in _USAGE):
        return None
    if not (_counts_only(details[0], _INPUT) and _counts_only(details[1], _OUTPUT)):
        return None
    cached, reasoning = details[0].get("cached_tokens"), details[1].get("reasoning_tokens")
    return known(Tokens(usage["prompt_tokens"], usage["completion_tokens"], cached, reasoning))


def _has_only(part: Any, known: Set[str], empty: Set[str], lists: Set[str] = frozenset()) -> bool:
    """Tell whether it is an object with the `known` fields alone, beside those that hold null, or an empty list."""
    if type(part) is not dict:
        return False
    beside = part.keys() - known
    return not beside or all(
        (part[name] is None and (name in empty or name in lists)) or (name in lists and part[name] == [])
        for name in beside
    )


def _counts_only(part: Any, known: Set[str]) -> bool:
    return type(part) is dict and part.keys() <= known and all(n is None or _is_count(n) for n in part.values())


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST_COUNT
