"""Failures of attempts: error answers, exceptions by their causes, and errors inside answers of status 200."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from evalake.core.files import tables_beside
from evalake.core.redaction import redact
from evalake.models import litellm_internals as internals
from evalake.models.request import FailureKind

if TYPE_CHECKING:
    from evalake.models.direct import Answer

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
ANSWERS = tables_beside(__file__, "answers.toml")
# Kinds by which a name in an error's body overrides its status. A retry does not help an account without credit.
_SAYS_MORE = frozenset({"content_policy", "context_length", "authentication"})
_NOT_LETTERS = re.compile(r"[\W_]+")
_KIND_OF_NAME: Mapping[str, FailureKind] = {
    _NOT_LETTERS.sub("", name): kind for kind, names in ANSWERS["kinds"].items() for name in names
}
_PHRASES = {name: re.compile("|".join(words), re.IGNORECASE) for name, words in ANSWERS["phrases"].items()}
_LITELLM_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w{1,40}(?:Error|Exception): |\w{1,40}Exception - ){1,6}")
_LONGEST_MESSAGE = 500
_LONGEST_EXCERPT = 200
INSIDE_200 = "inside an answer of status 200"
_LONGEST_READ = 20_000  # LiteLLM puts whole bodies into its messages


class AttemptFailed(Exception):  # noqa: N818 - an expected end of an attempt
    """One attempt ended without a reply. `retry_after` is in seconds; `cost_usd` follows from its stated usage."""

    def __init__(self, kind: FailureKind, message: str, retry_after: float | None = None):
        self.kind = kind
        self.cost_usd: float | None = None
        self.message = _presentable(message)
        super().__init__(self.message)
        self.retry_after = retry_after


def failure_of(answer: "Answer") -> AttemptFailed:
    """Classify an error answer by its status, its names and its words."""
    text = answer.body[:_LONGEST_READ].decode("utf-8", "replace")
    try:
        error = _error_of(json.loads(answer.body))
    except (ValueError, RecursionError):
        error = None
    said: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    words = _words(said) or text or "no words"
    kind = kind_of_status(answer.status)
    for named in (_kind_of_name(said.get("type")), _kind_of_name(said.get("code"))):
        kind = named if named is not None and named in _SAYS_MORE else kind
    return AttemptFailed(
        _kind_of_words(kind, words),
        f"HTTP {answer.status}: {words}",
        retry_after_seconds(answer.headers.get("retry-after")),
    )


def classify_error(error: BaseException) -> AttemptFailed:
    """Classify an exception of a call that no answer explains: of the network, or LiteLLM's own."""
    import aiohttp

    if isinstance(error, AttemptFailed):
        return error
    reason, status = reason_of_error(error), getattr(error, "status_code", None)
    if isinstance(error, TimeoutError):
        return AttemptFailed("timeout", reason)
    if isinstance(error, OSError | aiohttp.ClientError):
        return AttemptFailed("connection", reason)
    if isinstance(status, int) and 400 <= status < 500:  # LiteLLM refuses a parameter
        return AttemptFailed(kind_of_status(status), reason)
    return AttemptFailed("malformed_response", f"LiteLLM could not make the call: {reason}")


def reason_of_error(error: BaseException) -> str:
    """Return the words of an exception, without the names that LiteLLM puts before them."""
    return _LITELLM_PREFIX.sub("", str(error)) or type(error).__name__


def _kind_of_name(name: Any) -> FailureKind | None:
    """Look up the kind of an error's name, like `rate_limit_error` or `RateLimitError`; None for an unknown one."""
    return _KIND_OF_NAME.get(_NOT_LETTERS.sub("", name).lower()) if isinstance(name, str) else None


def _says(phrase: str, words: str) -> bool:
    return _PHRASES[phrase].search(words) is not None


def _kind_of_words(kind: FailureKind, words: str) -> FailureKind:
    """Return what the words of a refused request tell beyond its kind: a context that is too long, a filter, a key."""
    if kind not in ("bad_request", "authentication"):
        return kind
    if kind == "bad_request" and (_says("too_long", words) or internals.is_beyond_context(words)):
        return "context_length"
    if kind == "bad_request" and _says("wrong_key", words):
        return "authentication"
    refused = _says("filter", words) and _says("refused", words) and not _says("other_subject", words)
    return "content_policy" if refused else kind


def kind_of_status(status: Any) -> FailureKind:
    """Look up the kind of an HTTP status; `server` for any other value."""
    if not isinstance(status, int) or not 400 <= status < 500:
        return "server"
    return _KIND_OF_STATUS.get(status, "bad_request")


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
    return _kind_of_name(code)


def excerpt(text: str) -> str:
    """Cut a provider's text to the length of a message."""
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1] + "…"


def _presentable(message: str) -> str:
    """Write a message as one line of limited length, without keys, tracebacks and lone surrogates."""
    line = " ".join(redact(message[:_LONGEST_READ]).split("Traceback (most recent call last)")[0].split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


_REASONS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")


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
    for holder in (choice, value_of(choice, "message"), value_of(choice, "delta"), further):
        if error := value_of(holder, "error"):
            raise _failure(error, during)
    native = value_of(choice, "native_finish_reason") or value_of(further, "native_finish_reason")
    for reason in (native, stated_reason(answer)):
        if isinstance(reason, str) and _says("failed_reason", reason):
            raise AttemptFailed("server", f"{during}: the upstream ended its reply with the reason {reason}")


def _error_of(answer: Any) -> Any:
    """Find the error of an answer: its `error`, or the answer itself (vLLM, Anthropic, FastAPI, problem details)."""
    if isinstance(answer, list):  # Gemini wraps an error in a list
        return _error_of(answer[0]) if answer else None
    if error := value_of(answer, "error") or first_of(answer, "errors"):
        return error
    if not isinstance(answer, Mapping) or answer.get("choices"):
        return None
    if answer.get("object") == "error" or answer.get("type") == "error":
        return answer
    if detail := answer.get("detail"):
        return detail if isinstance(detail, Mapping) else {**answer, "message": detail}
    words = _words(answer)
    return answer if words and (_kinds(answer) or _kind_of_name(words)) else None


_CODES = ("code", "status", "status_code", "error_code", "type")


def _kinds(said: Mapping[str, Any]) -> list[FailureKind]:
    """List the kinds that the codes of an error tell; numbers below 400 are no codes of errors."""
    codes = [said.get(name) for name in _CODES]
    return [kind for code in codes if not _is_fine(code) and (kind := kind_inside_200(code)) is not None]


def _is_fine(code: Any) -> bool:
    return str(code).isdecimal() and int(code) < HTTPStatus.BAD_REQUEST


def _failure(error: Any, during: str) -> AttemptFailed:
    said: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    words = _words(said) or json.dumps(said, ensure_ascii=False, default=str)
    kind = next(iter(_kinds(said)), None) or _kind_of_name(words) or "server"
    return AttemptFailed(_kind_of_words(kind, words), f"{during}: {words}")


def _words(said: Mapping[str, Any]) -> str | None:
    """Join the upstream's message with that of the provider behind a router; None without a message."""
    names = ("message", "msg", "error", "title", "error_msg")
    message = next((said[name] for name in names if isinstance(said.get(name), str)), None)
    metadata = said.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if message is None or not raw:
        return message
    return f"{message} ({excerpt(raw if isinstance(raw, str) else json.dumps(raw, default=str))})"
