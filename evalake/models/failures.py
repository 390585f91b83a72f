"""Failures of attempts: classifies LiteLLM's exceptions by their causes, and errors inside answers of status 200."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from evalake.core.redaction import redact
from evalake.models.litellm_setup import load
from evalake.models.request import FailureKind

if TYPE_CHECKING:
    import httpx


RETRIED: frozenset[FailureKind] = frozenset({"timeout", "connection", "rate_limit", "server", "malformed_response"})
TRANSIENT: frozenset[FailureKind] = RETRIED | {"circuit_open"}
"""Kinds that pass by themselves: what failed so may be asked again later."""
STOPS_MODEL: frozenset[FailureKind] = frozenset({"authentication", "not_found"})
PROVIDER_DOWN: frozenset[FailureKind] = frozenset({"timeout", "connection", "server"})
OTHERS_MAY_ANSWER: frozenset[FailureKind] = TRANSIENT | STOPS_MODEL
"""Kinds that may be the provider's alone: a fallback of another provider may answer."""

_KIND_OF_STATUS: dict[int, FailureKind] = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
}
# Kinds by which a code in an error's body overrides its status. A retry does not help an account without credit.
_SAYS_MORE = frozenset({"content_policy", "context_length", "authentication"})
_KIND_OF_CODE: dict[str, FailureKind] = {
    "authentication_error": "authentication",
    "billing_error": "authentication",
    "content_filter": "content_policy",
    "content_policy_violation": "content_policy",
    "context_length_exceeded": "context_length",
    "insufficient_quota": "authentication",
    "invalid_api_key": "authentication",
    "invalid_request_error": "bad_request",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "overloaded_error": "server",
    "permission_denied": "authentication",
    "permission_error": "authentication",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "resource_exhausted": "rate_limit",
    "too_many_requests": "rate_limit",
    "unauthenticated": "authentication",
    "unauthorized": "authentication",
}
# Messages of providers whose filter refused a prompt or a reply, with status 400 and no code
_FILTERED = re.compile(
    r"content[ _-]?filter|content management policy|content[ _]policy|responsible ?ai ?policy|safety system",
    re.IGNORECASE,
)
_LITELLM_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w{1,40}(?:Error|Exception): |\w{1,40}Exception - ){1,6}")
_LONGEST_MESSAGE = 500
_LONGEST_EXCERPT = 200
INSIDE_200 = "inside an answer of status 200"
_LONGEST_READ = 20_000  # LiteLLM puts whole bodies into its messages
_DEEPEST_CAUSE = 20


class AttemptFailed(Exception):  # noqa: N818 - an expected end of an attempt
    """One attempt ended without a reply. `retry_after` is in seconds; `cost_usd` follows from its stated usage."""

    def __init__(
        self, kind: FailureKind, message: str, retry_after: float | None = None, cost_usd: float | None = None
    ):
        self.kind = kind
        self.cost_usd = cost_usd
        self.message = _presentable(message)
        super().__init__(self.message)
        self.retry_after = retry_after


def classify_error(error: BaseException) -> AttemptFailed:
    """Classify an exception of a call by kind, with the provider's message without keys."""
    if isinstance(error, AttemptFailed):
        return error
    answer = http_answer(error)
    reason = _LITELLM_PREFIX.sub("", str(error))
    if answer is None:
        kind = _kind(error, None)
        if kind == "malformed_response":
            reason = f"LiteLLM could not read the reply: {reason}"
        return AttemptFailed(kind, reason or type(error).__name__)
    body = _error_body(answer)
    message, code = body.get("message"), body.get("code")
    words = message if isinstance(message, str) else reason
    return AttemptFailed(
        _kind_by_words(answer.status_code, code, words) or _kind(error, answer.status_code),
        f"HTTP {answer.status_code}: {words}",
        retry_after_seconds(answer.headers.get("retry-after")),
    )


def _kind(error: BaseException, status: int | None) -> FailureKind:
    # LiteLLM's class counts only where it follows from the provider's message. Otherwise the cause decides: LiteLLM
    # raises InternalServerError for a dropped connection and for invalid JSON.
    litellm = load()
    if isinstance(error, litellm.ContextWindowExceededError):
        return "context_length"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "content_policy"
    if status == 400 and isinstance(error, litellm.AuthenticationError):  # Gemini's answer to a wrong key
        return "authentication"
    if status is None:
        cause = _kind_of_causes(error)
        if cause is not None:
            return cause
        status = getattr(error, "status_code", None)
        broke_off = isinstance(error, litellm.exceptions.MidStreamFallbackError)
        if not isinstance(status, int) or not 400 <= status < (600 if broke_off else 500):
            return "malformed_response"
    return kind_of_status(status)


def _kind_by_words(status: int, code: Any, words: str) -> FailureKind | None:
    """Find a kind that overrides the status; None without one."""
    if isinstance(code, str) and (kind := _KIND_OF_CODE.get(code)) in _SAYS_MORE:
        return kind
    return "content_policy" if status == HTTPStatus.BAD_REQUEST and _FILTERED.search(words) else None


def kind_of_status(status: Any) -> FailureKind:
    """Look up the kind of an HTTP status; `server` for any other value."""
    if not isinstance(status, int) or not 400 <= status < 500:
        return "server"
    return _KIND_OF_STATUS.get(status, "bad_request")


def _kind_of_causes(error: BaseException) -> FailureKind | None:
    import aiohttp
    import httpx
    import openai

    causes = tuple(_causes(error))
    if any(isinstance(cause, TimeoutError | httpx.TimeoutException | openai.APITimeoutError) for cause in causes):
        return "timeout"
    network = (OSError, httpx.TransportError, aiohttp.ClientError, openai.APIConnectionError)
    if any(isinstance(cause, network) and not isinstance(cause, load().APIConnectionError) for cause in causes):
        return "connection"
    if any(isinstance(cause, ValueError | RecursionError | LookupError | AttributeError) for cause in causes):
        return "malformed_response"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, at most _DEEPEST_CAUSE."""
    for _ in range(_DEEPEST_CAUSE):
        yield error
        below = error.__cause__ or error.__context__
        if below is None:
            return
        error = below


def http_answer(error: BaseException) -> "httpx.Response | None":
    """Find the real HTTP answer; LiteLLM's exceptions also carry invented ones."""
    import httpx

    return next((cause.response for cause in _causes(error) if isinstance(cause, httpx.HTTPStatusError)), None)


def _error_body(answer: "httpx.Response") -> Mapping[str, Any]:
    """Read the object in an error body like {"error": {"message": …, "code": …}}; empty for any other form."""
    import httpx

    try:
        error = answer.json()["error"]
    except (ValueError, LookupError, TypeError, RecursionError, httpx.StreamError):
        return {}
    return error if isinstance(error, dict) else {}


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Read the seconds of a Retry-After header, which may be an HTTP date; None without a valid one."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if seconds == seconds else None  # None for NaN


def kind_inside_200(code: Any) -> FailureKind | None:
    """Read the kind of an error inside an answer of status 200: by status or name; an upstream timeout is `server`."""
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool):
        kind = kind_of_status(code)
        return "server" if kind == "timeout" else kind
    return _KIND_OF_CODE.get(code.lower()) if isinstance(code, str) else None


def excerpt(text: str) -> str:
    """Cut a provider's text to the length of a message."""
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1] + "…"


def _presentable(message: str) -> str:
    """Write a message as one line of limited length, without keys, tracebacks and lone surrogates."""
    line = " ".join(redact(message[:_LONGEST_READ]).split("Traceback (most recent call last)")[0].split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


_REASONS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
_FAILED_REASON = re.compile(r"(?:^|_)(?:error|failed|failure)$", re.IGNORECASE)  # Zhipu has network_error


def value_of(holder: Any, name: str) -> Any:
    """Look up a field of a JSON object or of LiteLLM's object; None without it."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def first_of(holder: Any, name: str) -> Any:
    """Look up the first of a list; None without it."""
    found = value_of(holder, name)
    return found[0] if isinstance(found, list) and found else None


def stated_reason(answer: Any) -> Any:
    """Find the reason for which an answer, or a piece of one, says that it ended, in the language of any provider."""
    for holder in (first_of(answer, "choices"), first_of(answer, "candidates"), value_of(answer, "delta"), answer):
        for name in _REASONS:
            if reason := value_of(holder, name):
                return reason
    if value_of(value_of(answer, "promptFeedback"), "blockReason"):
        return "content_filter"
    return "stop" if value_of(answer, "done") is True else None  # older servers of Ollama


def require_no_failure(answer: Any, *, during: str = INSIDE_200) -> None:
    """Raise AttemptFailed where an answer or a piece of one (JSON, or LiteLLM's object) reports a failure.

    `during` tells the time of the failure in the message.
    """
    if (error := _error_of(answer)) is not None:
        raise _failure(error, during)
    choice = first_of(answer, "choices")
    further = value_of(choice, "provider_specific_fields") or {}  # LiteLLM's place for unknown fields
    reason = value_of(further, "native_finish_reason") or stated_reason(answer)
    error = value_of(choice, "error") or value_of(further, "error")
    if error:
        raise _failure(error, during)
    if isinstance(reason, str) and _FAILED_REASON.search(reason):
        raise AttemptFailed("server", f"{during}: the upstream ended its reply with the reason {reason}")


def _error_of(answer: Any) -> Any:
    """Find the error of an answer: its `error`, or the answer itself (vLLM, Anthropic, FastAPI)."""
    if error := value_of(answer, "error"):
        return error
    if not isinstance(answer, Mapping) or answer.get("choices"):
        return None
    if answer.get("object") == "error" or answer.get("type") == "error":
        return answer
    return {"message": answer["detail"]} if answer.get("detail") else None


def _failure(error: Any, during: str) -> AttemptFailed:
    said: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    kinds = (kind_inside_200(said.get(name)) for name in ("code", "status", "status_code", "type"))
    return AttemptFailed(next(filter(None, kinds), "server"), f"{during}: {_words(said)}")


def _words(said: Mapping[str, Any]) -> str:
    """Join the upstream's message with that of the provider behind a router."""
    message = said.get("message") or said.get("msg") or said.get("error")
    words = message if isinstance(message, str) else json.dumps(said, ensure_ascii=False, default=str)
    metadata = said.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{words} ({excerpt(raw if isinstance(raw, str) else json.dumps(raw, default=str))})" if raw else words
