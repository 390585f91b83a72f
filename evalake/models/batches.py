"""Batch jobs: submits requests as one job, follows it, reads its results, and deletes its files.

    service = batch_service(route, keys)
    file = service.upload(job_id, requests)
    job = service.submit(job_id, file, requests)
    while not job.ended: job = service.look(job.provider_id)
    for result in service.results(job): …

LiteLLM maps the requests and reads the answers, as for single calls. The jobs themselves are plain HTTP, since LiteLLM
cannot create Anthropic's, and OpenAI's client repeats a submission whose answer was lost, which would be paid twice.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.cost import batch_share
from evalake.models.direct import encoded, warm_up
from evalake.models.failures import AttemptFailed, excerpt
from evalake.models.litellm_calls import as_sent, read_stored
from evalake.models.replies import reply_of
from evalake.models.request import Reply, Request
from evalake.models.routes import Route

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 600.0  # of an upload or a download
PAGE = 100  # jobs or files of a list
_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500
_MAY_PASS = frozenset({408, 409, 425, 429})
_GONE = frozenset({404, 410})
_LATE = frozenset({"batch_expired", "batch_cancelled"})
_FOR_NOW = re.compile("enqueued|token_limit_exceeded|rate_limit|too_many_requests", re.IGNORECASE)
_CHAT, _ANTHROPIC = "/chat/completions", "/v1/messages"
JOB = "evalake_job"  # names our job in the metadata of the provider's


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
    is_for_now: bool = False  # the provider refuses while it has so much to do, and may take the job later


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one request of a job."""

    request_id: str
    reply: Reply | None = None
    state: Literal["answered", "failed", "expired"] = "answered"
    message: str | None = None


@dataclass(frozen=True)
class Shape:
    """Where a provider's job tells what: names, or paths of names."""

    ended: frozenset[str]
    done: str = "request_counts.completed"
    failed: tuple[str, ...] = ("request_counts.failed",)
    state: str = "status"
    errors: str = "errors.data"
    files: tuple[str, ...] = ("output_file_id", "error_file_id")
    fails_whole: bool = True  # a job that has failed answers nothing, whatever files it names


Requests = Sequence[tuple[str, Request]]
"""Requests with their ids in the job."""


class BatchService:
    """The batch jobs of one model at its provider: a file of requests is uploaded, and a job names it."""

    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 100 * 2**20
    clocks: ClassVar[timedelta] = timedelta(hours=1)  # by which the provider's times may differ from ours
    jobs: ClassVar[str] = "/batches"
    after: ClassVar[str] = "after"  # the parameter of a list's next page
    shape: ClassVar[Shape] = Shape(frozenset({"completed", "failed", "expired", "cancelled"}))

    def __init__(self, route: Route, keys: KnownKeys) -> None:
        import httpx

        self._route, self._keys = route, keys
        sent = as_sent(Request(route.model, ({"role": "user", "content": "x"},), {}), route)
        self._model = json.loads(sent.body).get("model")
        where = httpx.URL(sent.address)
        self._query = dict(where.params)
        self._base = self._base_of(str(where.copy_with(query=None)))
        self._http = httpx.Client(
            headers={name: value for name, value in sent.headers.items() if name.lower() != "content-type"},
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,  # a redirect would send the key to another address
        )
        self._share = batch_share(route.model, route.price)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def upload(self, job_id: str, requests: Requests) -> str | None:
        """Upload the requests of a job, or find its file that is there already; returns its id, None without one."""
        name = f"evalake-{job_id}.jsonl"
        for file in self._pages("/files", purpose="batch"):
            if file.get("filename") == name:
                return str(file["id"])
        content = b"\n".join(encoded(self._line(request_id, self.body(request))) for request_id, request in requests)
        sent = self._ask("POST", "/files", data={"purpose": "batch"}, files={"file": (name, content)})
        return str(sent["id"])

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        """Submit a job. Raises BatchError; unless that is a refusal, the provider may have the job."""
        return self._job(self._ask("POST", self.jobs, json=self._order(job_id, file)))

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        """Find a job that was submitted after `since`; None where there is none. Raises BatchError where unsure."""
        ours = (self._job(job) for job in self._since(since) if self._name(job) == job_id)
        return min(ours, key=lambda job: job.refused is not None, default=None)  # one refused for now was repeated

    def look(self, provider_id: str) -> ProviderJob:
        """Look how far a job is."""
        return self._job(self._ask("GET", f"{self.jobs}/{provider_id}"))

    def cancel(self, provider_id: str) -> None:
        """Cancel a job; its results so far stay."""
        self._ask("POST", f"{self.jobs}/{provider_id}/cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a job's results, in any order and any number; one that cannot be read is empty."""
        for file in job.files:
            yield from self._stream(f"{self._base}/files/{file}/content")

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        """Read the line that answers a request."""
        request_id, answer = str(line.get("custom_id")), line.get("response") or {}
        if answer.get("status_code") == 200 and not line.get("error"):
            return self._read(request_id, answer.get("body"), request)
        error = line.get("error") or (answer.get("body") or {}).get("error") or answer
        return self._unanswered(request_id, error, isinstance(error, Mapping) and error.get("code") in _LATE)

    def delete(self, provider_id: str | None, file: str | None) -> None:
        """Delete what the provider keeps of a job that has ended; what is gone already is no error."""
        job = self._ask("GET", f"{self.jobs}/{provider_id}", missing_is_fine=True) if provider_id else {}
        for each in (file, *(self._job(job).files if job else ())):
            if each is not None:
                self._ask("DELETE", f"/files/{each}", missing_is_fine=True)

    def body(self, request: Request) -> Mapping[str, Any]:
        """Build the body of a request, as a single call would send it."""
        body: Mapping[str, Any] = json.loads(as_sent(request, self._route).body)
        return body

    def _base_of(self, address: str) -> str:
        """Derive the base of the jobs' addresses from that of the model's calls."""
        return address.removesuffix(_CHAT).partition("/deployments/")[0]  # of Azure

    @property
    def _endpoint(self) -> str:
        return _CHAT if self._route.provider == "azure" else f"/v1{_CHAT}"

    def _line(self, request_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": request_id, "method": "POST", "url": self._endpoint, "body": body}

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        window = {"completion_window": "24h", "metadata": {JOB: job_id}}
        return {"input_file_id": file, "endpoint": self._endpoint, **window}

    def _name(self, job: Mapping[str, Any]) -> Any:
        return (job.get("metadata") or {}).get(JOB)

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        shape = self.shape
        state, failed = str(job.get(shape.state)), sum(int(_at(job, name) or 0) for name in shape.failed)
        files = tuple(str(job[name]) for name in shape.files if job.get(name))
        is_refused = state.lower() == "failed" and (shape.fails_whole or not files)
        refused = _reason(_at(job, shape.errors)) if is_refused else None
        return ProviderJob(
            str(job["id"]),
            state.lower(),
            state in shape.ended,
            int(_at(job, shape.done) or 0),
            failed,
            time_of(job.get("expires_at")),
            refused,
            files,
            refused is not None and _FOR_NOW.search(refused) is not None,
        )

    def _since(self, since: datetime) -> Iterator[Mapping[str, Any]]:
        """Yield the jobs that were created after a time, the newest first."""
        for job in self._pages(self.jobs):
            if (created := time_of(job.get("created_at"))) is not None and created < since - self.clocks:
                return
            yield job

    def _read(self, request_id: str, answer: Any, request: Request) -> Result:
        """Read the answer to a request, at the price of a batch job."""
        try:
            read = read_stored(encoded(answer), request, self._route)
        except AttemptFailed as failure:
            return Result(request_id, None, "failed", failure.message)
        reply = reply_of(read, self._route, self._keys)
        paid = None if reply.cost_usd is None else reply.cost_usd * self._share
        return Result(request_id, replace(reply, cost_usd=paid))

    def _unanswered(self, request_id: str, said: Any, is_late: bool) -> Result:
        message = self._keys.redact(excerpt(json.dumps(said)))
        return Result(request_id, None, "expired" if is_late else "failed", message)

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
        """Yield the JSON objects of a file of results, one a line."""
        import httpx

        try:
            with self._http.stream("GET", address, params=self._query) as answer:
                if answer.status_code >= 300:
                    answer.read()
                self._require_ok(answer, "GET", address)
                rest = b""
                for part in answer.iter_bytes():
                    *lines, rest = (rest + part).split(b"\n")  # httpx splits at U+2028, too, which JSON may hold
                    yield from (_object(line) for line in lines if line.strip())
                if rest.strip():
                    yield _object(rest)
        except httpx.HTTPError as error:
            raise BatchError(f"{self._what('GET', address)} broke off: {type(error).__name__} {error}") from error

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a list, the newest first."""
        cursor: Mapping[str, Any] | None = {}
        while cursor is not None:
            page = self._ask("GET", path, params={**params, "limit": PAGE, **cursor})
            yield from (entries := page.get("data") or [])
            more = entries and page.get("has_more")
            cursor = {self.after: page.get("last_id") or entries[-1]["id"]} if more else None

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


def _object(line: bytes) -> Mapping[str, Any]:
    """Read a line of results; one that cannot be read is empty."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
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


def _at(job: Any, path: str) -> Any:
    """Look up a path of names; None where one is missing."""
    for name in path.split("."):
        job = job.get(name) if isinstance(job, Mapping) else None
    return job


def _reason(errors: Any) -> str:
    """Say why a provider refused a whole job."""
    told = (": ".join(str(error[name]) for name in ("code", "message") if error.get(name)) for error in errors or [])
    return excerpt("; ".join(told) or "no reason given")


# Providers that differ from OpenAI's form: Mistral's and xAI's in names, Anthropic's as a whole.


class _MistralForm(BatchService):
    """Mistral's form: the job names the model, and lists are numbered pages."""

    jobs = "/batch/jobs"
    shape = Shape(
        frozenset({"SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED"}),
        done="succeeded_requests",
        failed=("failed_requests",),
        errors="errors",
        files=("output_file", "error_file"),
        fails_whole=False,
    )

    def _line(self, request_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": request_id, "body": {name: value for name, value in body.items() if name != "model"}}

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        return {"input_files": [file], "endpoint": self._endpoint, "model": self._model, "metadata": {JOB: job_id}}

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        entries: list[Mapping[str, Any]] = [{}] * PAGE
        number = 0
        while len(entries) == PAGE:
            page = self._ask("GET", path, params={**params, "page_size": PAGE, "page": number})
            yield from (entries := page.get("data") or [])
            number += 1


class _XAIForm(BatchService):
    """xAI's form: a job has a name and counters, and its results are pages of a list."""

    clocks = timedelta(hours=25)  # its times may be mere days

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        return {"name": f"{JOB} {job_id}", "input_file_id": file}

    def _name(self, job: Mapping[str, Any]) -> Any:
        return str(job.get("name")).removeprefix(f"{JOB} ")

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        cursor: Mapping[str, Any] | None = {}
        while cursor is not None:
            page = self._ask("GET", path, params={**params, "limit": PAGE, **cursor})
            yield from (entries := page.get("data") or page.get("batches") or page.get("results") or [])
            token = page.get("pagination_token")
            cursor = {"pagination_token": token} if token and entries else None

    def cancel(self, provider_id: str) -> None:
        self._ask("POST", f"{self.jobs}/{provider_id}:cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        for each in self._pages(f"{self.jobs}/{job.provider_id}/results"):
            result = each.get("batch_result") or {}
            body = next(iter((result.get("response") or {}).values()), None)  # by the name of its endpoint
            answer = {"response": {"status_code": 200, "body": body}} if body else {"error": result.get("error")}
            yield {"custom_id": each.get("batch_request_id"), **answer}

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        counts = {name: int(count or 0) for name, count in (job.get("state") or {}).items()}
        all_of_them, refused = counts.get("num_requests", 0), job.get("cancel_by_xai_message")
        is_over = all_of_them > 0 and counts.get("num_pending", 0) == 0
        is_cancelled = bool(job.get("cancel_time"))
        return ProviderJob(
            str(job["batch_id"]),
            "cancelled" if is_cancelled else "completed" if is_over else "in_progress",
            is_cancelled or is_over,
            counts.get("num_success", 0),
            counts.get("num_error", 0) + counts.get("num_cancelled", 0),
            time_of(job.get("expire_time")),
            excerpt(str(refused)) if refused and not counts.get("num_success") else None,
        )


class _AnthropicForm(BatchService):
    """Anthropic's form: the job holds its requests. It has no metadata, but its requests' ids name our job."""

    most_requests = 100_000
    jobs = ""
    after = "after_id"
    shape = Shape(
        frozenset({"ended"}),
        done="request_counts.succeeded",
        failed=("request_counts.errored", "request_counts.expired", "request_counts.canceled"),
        state="processing_status",
        files=(),
    )

    def _base_of(self, address: str) -> str:
        return f"{address.removesuffix(_ANTHROPIC)}{_ANTHROPIC}/batches"

    def upload(self, job_id: str, requests: Requests) -> str | None:
        return None

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        asked = [{"custom_id": request_id, "params": self.body(request)} for request_id, request in requests]
        headers = {"content-type": "application/json"}
        return self._job(self._ask("POST", "", content=encoded({"requests": asked}), headers=headers))

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        running = None
        for each in self._since(since):
            job = self._job(each)
            if sum((each.get("request_counts") or {}).values()) != requests:
                continue
            if not job.ended:
                running = job
            elif any(str(line.get("custom_id")).startswith(f"{job_id}-") for line in self.lines(job)):
                return job
        if running is not None:
            raise BatchError(f"whether the job {running.provider_id} is ours is known once it has ended")
        return None

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        return self._stream(f"{self._base}/{job.provider_id}/results")

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        request_id, result = str(line.get("custom_id")), line.get("result") or {}
        if (kind := result.get("type")) == "succeeded":
            return self._read(request_id, result.get("message"), request)
        return self._unanswered(request_id, result, kind in ("expired", "canceled"))

    def delete(self, provider_id: str | None, file: str | None) -> None:
        if provider_id is not None:
            self._ask("DELETE", f"/{provider_id}", missing_is_fine=True)


_FORMS: Mapping[str, type[BatchService]] = {
    "anthropic": _AnthropicForm,
    **dict.fromkeys(("azure", "groq", "hosted_vllm", "openai"), BatchService),
    "mistral": _MistralForm,
    "xai": _XAIForm,
}


def batch_service(route: Route, keys: KnownKeys) -> BatchService:
    """Open the batch jobs of a model. Raises ProviderError where its provider has none that evalake reaches."""
    require_batches(route)
    warm_up()
    return _FORMS[route.provider](route, keys)


def require_batches(route: Route) -> None:
    """Raise ProviderError where evalake reaches no batch jobs of a model's provider."""
    if route.provider not in _FORMS:
        raise ProviderError(
            f"evalake reaches no batch jobs of {route.provider}, the provider of {route.model}: leave --batch out, or "
            f'set batch = false under [models."{route.model}"] (there are jobs for {", ".join(sorted(_FORMS))})'
        )
