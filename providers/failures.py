"""What went wrong with one attempt: LiteLLM's exceptions, read down to their cause, become one of our kinds."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from providers.litellm_setup import load
from providers.redaction import redact
from providers.request import FailureKind

if TYPE_CHECKING:
    import httpx

RETRIED: frozenset[FailureKind] = frozenset({"timeout", "connection", "rate_limit", "server", "malformed_response"})
STOPS_MODEL: frozenset[FailureKind] = frozenset({"authentication", "not_found"})
PROVIDER_DOWN: frozenset[FailureKind] = frozenset({"timeout", "connection", "server"})

_KIND_OF_STATUS: dict[int, FailureKind] = {
    401: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
}
_LITELLM_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w{1,40}(?:Error|Exception): |\w{1,40}Exception - ){1,6}")
_LONGEST_MESSAGE = 500
_LONGEST_READ = 20_000  # LiteLLM puts whole bodies into its messages
_DEEPEST_CAUSE = 20


class AttemptFailed(Exception):  # noqa: N818 - not an error of the program: one of the ways an attempt ends
    """One attempt ended without a reply. `retry_after` is in seconds."""

    def __init__(self, kind: FailureKind, message: str, retry_after: float | None = None):
        self.kind = kind
        self.message = _presentable(message)
        super().__init__(self.message)
        self.retry_after = retry_after


def understand(error: BaseException) -> AttemptFailed:
    """Say which kind of failure an exception of a call is, in the provider's words without keys."""
    answer = _http_answer(error)
    if answer is None:
        words = _LITELLM_PREFIX.sub("", str(error)) or type(error).__name__
        return AttemptFailed(_kind(error, None), words)
    retry_after = retry_after_seconds(answer.headers.get("retry-after"))
    return AttemptFailed(
        _kind(error, answer.status_code), f"HTTP {answer.status_code}: {_words(answer, error)}", retry_after
    )


def _kind(error: BaseException, status: int | None) -> FailureKind:
    # LiteLLM's own class is trusted only for what it reads from the provider's words. Otherwise the cause tells: a
    # dropped connection and a body that is no JSON both reach us as its InternalServerError.
    litellm = load()
    if isinstance(error, litellm.ContextWindowExceededError):
        return "context_length"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "content_policy"
    if status is None:
        cause = _kind_of_causes(error)
        if cause is not None:
            return cause
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or not 400 <= status < 500:
            return "malformed_response"
    return _KIND_OF_STATUS.get(status, "server" if status >= 500 else "bad_request")


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
    """The exception and what it came from, at most _DEEPEST_CAUSE of them."""
    for _ in range(_DEEPEST_CAUSE):
        yield error
        below = error.__cause__ or error.__context__
        if below is None:
            return
        error = below


def _http_answer(error: BaseException) -> "httpx.Response | None":
    """The answer that really came, where one did; LiteLLM's exceptions carry invented ones, too."""
    import httpx

    return next((cause.response for cause in _causes(error) if isinstance(cause, httpx.HTTPStatusError)), None)


def _words(answer: "httpx.Response", error: BaseException) -> str:
    """The message in an error body of the usual form ({"error": {"message": …}}), else all that LiteLLM says."""
    import httpx

    try:
        message = answer.json()["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError, httpx.StreamError):
        message = None
    return message if isinstance(message, str) else _LITELLM_PREFIX.sub("", str(error))


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or an HTTP date); None where there is none or it is garbage."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if seconds == seconds else None  # NaN is no answer


def _presentable(message: str) -> str:
    """One line without keys, tracebacks and characters that are no text, cut to a readable length."""
    line = " ".join(redact(message[:_LONGEST_READ]).split("Traceback (most recent call last)")[0].split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"
