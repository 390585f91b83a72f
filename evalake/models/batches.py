"""Batch jobs of providers: submits requests as one job, follows it, reads its results, and deletes its files.

    service = batch_service(route, keys)  # of batch_forms.py, which has each provider's form
    file = service.upload(job_id, requests)
    job = service.submit(job_id, file, requests)
    while not job.ended: job = service.look(job.provider_id)
    for result in service.results(job): …

LiteLLM maps the requests and reads the answers, as for single calls. The jobs themselves are plain HTTP, since LiteLLM
cannot create Anthropic's, and OpenAI's client repeats a submission whose answer was lost, which would be paid twice.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.cost import batch_share, messages_of
from evalake.models.direct import read_whole
from evalake.models.direct_models import DIRECT, DirectModel, encoded
from evalake.models.failures import AttemptFailed, excerpt
from evalake.models.replies import reply_of
from evalake.models.request import Reply, Request
from evalake.models.routes import Route
from evalake.models.transport import Answer

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 600.0  # of an upload or a download
PAGE = 100  # jobs or files of a list
_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500
_MAY_PASS = frozenset({408, 409, 425, 429})
_GONE = frozenset({404, 410})


class BatchError(ProviderError):
    """A provider did not do what was asked about a job.

    `is_refusal`: it did understand, and it refuses. `is_gone`: it has no such job or file.
    """

    def __init__(self, message: str, *, is_refusal: bool = False, is_gone: bool = False) -> None:
        super().__init__(message)
        self.is_refusal, self.is_gone = is_refusal, is_gone


@dataclass(frozen=True, slots=True)
class ProviderJob:
    """A job as its provider tells of it."""

    provider_id: str
    state: str  # in the provider's words
    ended: bool
    done: int = 0
    failed: int = 0
    expires_at: datetime | None = None
    refused: str | None = None  # why the provider refused the whole job
    files: tuple[str, ...] = ()  # of results


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one request of a job."""

    request_id: str
    reply: Reply | None = None
    state: Literal["answered", "failed", "expired"] = "answered"
    message: str | None = None


Requests = Sequence[tuple[str, Request]]
"""Requests with their ids in the job."""


class BatchService:
    """The batch jobs of one model at its provider."""

    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 100 * 2**20
    clocks: ClassVar[timedelta] = timedelta(hours=1)  # by which the provider's times may differ from ours

    def __init__(self, route: Route, keys: KnownKeys) -> None:
        import httpx

        self._route, self._keys = route, keys
        self._models: dict[str, DirectModel] = {}
        address, headers, _ = self._model({}).request([{"role": "user", "content": ""}])
        where = httpx.URL(address)
        self._query = dict(where.params)
        self._base = self.base_of(str(where.copy_with(query=None)))
        self._http = httpx.Client(
            headers={name: value for name, value in headers.items() if name.lower() != "content-type"},
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,  # a redirect would send the key to another address
        )
        self._share = batch_share(route.model, route.price)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def base_of(self, address: str) -> str:
        """Derive the base of the jobs' addresses from that of the model's calls."""
        raise NotImplementedError

    def upload(self, job_id: str, requests: Requests) -> str | None:
        """Upload the requests of a job, or find its file that is there already; returns its id, None without one."""
        raise NotImplementedError

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        """Submit a job. Raises BatchError; unless that is a refusal, the provider may have the job."""
        raise NotImplementedError

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        """Find a job that was submitted after `since`; None where there is none. Raises BatchError where unsure."""
        raise NotImplementedError

    def look(self, provider_id: str) -> ProviderJob:
        """Look how far a job is."""
        raise NotImplementedError

    def cancel(self, provider_id: str) -> None:
        """Cancel a job; its results so far stay."""
        raise NotImplementedError

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a job's results, in any order and any number."""
        raise NotImplementedError

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        """Read the line that answers a request."""
        raise NotImplementedError

    def delete(self, provider_id: str | None, file: str | None) -> None:
        """Delete what the provider keeps of a job that has ended; what is gone already is no error."""
        raise NotImplementedError

    def body(self, request: Request) -> dict[str, Any]:
        """Build the body of a request, as a single call would send it."""
        _, _, body = self._model(request.parameters).request(messages_of(request, self._route.provider))
        return body

    def _model(self, parameters: Mapping[str, Any]) -> DirectModel:
        key = json.dumps(dict(parameters), sort_keys=True)
        if key not in self._models:
            self._models[key] = DIRECT[self._route.provider](self._route, parameters)
        return self._models[key]

    def _read(self, request_id: str, answer: Any, request: Request) -> Result:
        """Read the answer to a request, at the price of a batch job."""
        messages = messages_of(request, self._route.provider)
        received = Answer(200, {}, encoded(answer))
        try:
            read = read_whole(self._model(request.parameters), received, self.body(request), messages)
        except AttemptFailed as failure:
            return Result(request_id, None, "failed", failure.message)
        reply = reply_of(read, self._route, self._keys)
        paid = None if reply.cost_usd is None else reply.cost_usd * self._share
        return Result(request_id, replace(reply, cost_usd=paid))

    def _ask(self, method: str, path: str, missing_is_fine: bool = False, **more: Any) -> Any:
        """Make one request for JSON, without a retry."""
        import httpx

        try:
            answer = self._http.request(
                method, self._base + path, params={**self._query, **more.pop("params", {})}, **more
            )
        except httpx.HTTPError as error:
            raise BatchError(f"{self._what(method, path)} failed: {type(error).__name__} {error}") from error
        if missing_is_fine and answer.status_code in _GONE:
            return {}
        self._require_ok(answer, method, path)
        try:
            return answer.json()
        except ValueError as error:
            raise BatchError(f"{self._what(method, path)} was answered without JSON: {excerpt(answer.text)}") from error

    def _stream(self, address: str) -> Iterator[Mapping[str, Any]]:
        """Yield the JSON lines of a file of results."""
        import httpx

        try:
            with self._http.stream("GET", address, params=self._query) as answer:
                if answer.status_code >= 300:
                    answer.read()
                self._require_ok(answer, "GET", address)
                for line in answer.iter_lines():
                    if line.strip():
                        yield _object(line)
        except httpx.HTTPError as error:
            raise BatchError(f"{self._what('GET', address)} broke off: {type(error).__name__} {error}") from error

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a list, the newest first."""
        cursor: Mapping[str, Any] | None = {}
        while cursor is not None:
            page = self._ask("GET", path, params={**params, "limit": PAGE, **cursor})
            entries = page.get("data") or []
            yield from entries
            cursor = self._following(page, entries) if entries else None

    def _following(self, page: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Build the parameters of the page after this one; None for the last."""
        return {"after": page.get("last_id") or entries[-1]["id"]} if page.get("has_more") else None

    def _require_ok(self, answer: "httpx.Response", method: str, path: str) -> None:
        status = answer.status_code
        if status < 300:
            return
        words = self._keys.redact(excerpt(answer.text))
        is_refusal = _CLIENT_ERRORS <= status < _SERVER_ERRORS and status not in _MAY_PASS
        said = f"{self._what(method, path)} was answered with HTTP {status}: {words}"
        raise BatchError(said, is_refusal=is_refusal, is_gone=status in _GONE)

    def _what(self, method: str, path: str) -> str:
        return f"{self._route.provider}: {method} {path.removeprefix(self._base)}"


def _object(line: str) -> Mapping[str, Any]:
    """Read a line of results; one that cannot be read answers no request."""
    try:
        read = json.loads(line)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def time_of(value: Any) -> datetime | None:
    """Read a time, as seconds since 1970 or in ISO form."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return read.replace(tzinfo=UTC) if read and read.tzinfo is None else read
