"""What an upstream says went wrong inside an answer of status 200: such an answer is a failure, never a reply.

Proxies and routers answer 200 and put an error into the body, into a choice, or into a finish reason. Its code or its
name tells the kind, as a status would, and its own words are kept.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from providers.failures import INSIDE_200, AttemptFailed, excerpt, kind_inside_200
from providers.request import FailureKind

_FAILED_REASON = re.compile(r"(?:^|_)(?:error|failed|failure)$", re.IGNORECASE)  # Zhipu has network_error


def value_of(holder: Any, name: str) -> Any:
    """Look up a field of an object of JSON or of LiteLLM's; None where it has none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def require_no_failure(answer: Any, *, during: str = INSIDE_200) -> None:
    """Raise AttemptFailed where an answer, or a piece of one, says that the upstream failed.

    Args:
        answer: An object of JSON, or one of LiteLLM's.
        during: Where the failure came, for its message.
    """
    if (error := _error_of(answer)) is not None:
        raise _failure(error, during)
    choices = value_of(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    further = value_of(choice, "provider_specific_fields") or {}  # where LiteLLM keeps what it does not know
    reason = value_of(further, "native_finish_reason") or value_of(choice, "finish_reason")
    error = value_of(choice, "error") or value_of(further, "error")
    if error:
        raise _failure(error, during)
    if isinstance(reason, str) and _FAILED_REASON.search(reason):
        raise AttemptFailed("server", f"{during}: the upstream ended its reply with the reason {reason}")


def _error_of(answer: Any) -> Any:
    """Find the error of an answer: `error`, or the answer itself where it is one (vLLM, Anthropic, FastAPI)."""
    if error := value_of(answer, "error"):
        return error
    if not isinstance(answer, Mapping) or answer.get("choices"):
        return None
    if answer.get("object") == "error" or answer.get("type") == "error":
        return answer
    return {"message": answer["detail"]} if answer.get("detail") else None


def _failure(error: Any, during: str) -> AttemptFailed:
    said: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    return AttemptFailed(_kind(said), f"{during}: {_words(said)}")


def _kind(said: Mapping[str, Any]) -> FailureKind:
    kinds = (kind_inside_200(said.get(name)) for name in ("code", "status", "status_code", "type"))
    return next(filter(None, kinds), "server")


def _words(said: Mapping[str, Any]) -> str:
    """Join the words of the upstream and, where a router hands them on, those of the provider behind it."""
    message = said.get("message") or said.get("msg") or said.get("error")
    words = message if isinstance(message, str) else json.dumps(said, ensure_ascii=False, default=str)
    metadata = said.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{words} ({excerpt(raw if isinstance(raw, str) else json.dumps(raw, default=str))})" if raw else words
