"""Batch jobs: submits requests as one job, follows it, reads its results, and deletes its files.

    service = batch_service(route, keys)
    file = service.upload(job_id, requests)
    job = service.submit(job_id, file, requests)
    while not job.ended: job = service.look(job.provider_id)
    for result in service.results(job): …

LiteLLM maps the requests and reads the answers, as for single calls. The jobs themselves are plain HTTP, since LiteLLM
cannot create Anthropic's, and OpenAI's client repeats a submission whose answer was lost, which would be paid twice.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.cost import batch_share
from evalake.models.direct import LARGEST_REPLY, LARGEST_STREAM, encoded, warm_up
from evalake.models.failures import AttemptFailed, excerpt
from evalake.models.litellm_calls import as_sent, read_stored
from evalake.models.replies import reply_of
from evalake.models.request import Reply, Request
from evalake.models.routes import Route

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 600.0  # of an upload or a download
PAGE = 100  # jobs or files of a list
MOST_PAGES = 10_000
_LARGEST_COUNT = 2**31 - 1  # of requests
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
    _first_page: ClassVar[Mapping[str, Any]] = {"limit": PAGE}
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
                return self._id(file)
        content = b"\n".join(encoded(self._line(request_id, self.body(request))) for request_id, request in requests)
        sent = self._ask("POST", "/files", data={"purpose": "batch"}, files={"file": (name, content)})
        return self._id(sent)

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
        if _at(answer, "status_code") == 200 and not line.get("error"):
            return self._read(request_id, _at(answer, "body"), request)
        error = line.get("error") or _at(answer, "body.error") or answer
        return self._unanswered(request_id, error, str(_at(error, "code")) in _LATE)

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
        return _at(job, f"metadata.{JOB}")

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        shape = self.shape
        state, failed = str(job.get(shape.state)), sum(_count(_at(job, name)) for name in shape.failed)
        files = tuple(str(job[name]) for name in shape.files if job.get(name))
        is_refused = state.lower() == "failed" and (shape.fails_whole or not files)
        refused = _reason(_at(job, shape.errors)) if is_refused else None
        return ProviderJob(
            self._id(job),
            state.lower(),
            state in shape.ended,
            _count(_at(job, shape.done)),
            failed,
            time_of(job.get("expires_at")),
            refused,
            files,
            refused is not None and _FOR_NOW.search(refused) is not None,
        )

    def _id(self, told: Mapping[str, Any], name: str = "id") -> str:
        """Read the id of a job or file, without which nothing can be done about it."""
        if not (found := told.get(name)):
            raise BatchError(f"{self._route.provider} names no {name}: {self._said(json.dumps(told))}")
        return str(found)

    def _since(self, since: datetime) -> Iterator[Mapping[str, Any]]:
        """Yield the jobs that were created after a time, the newest first."""
        for job in self._pages(self.jobs):
            if (created := time_of(job.get("created_at"))) is not None and created < since - self.clocks:
                return
            yield job

    def _read(self, request_id: str, answer: Any, request: Request) -> Result:
        """Read the answer to a request, at the price of a batch job."""
        try:  # written as it came: a single call takes NaN, too
            read = read_stored(json.dumps(answer).encode(), request, self._route)
        except AttemptFailed as failure:
            return Result(request_id, None, "failed", failure.message)
        except RecursionError:
            return Result(request_id, None, "failed", "its answer is nested too deeply")
        reply = reply_of(read, self._route, self._keys)
        paid = None if reply.cost_usd is None else reply.cost_usd * self._share
        return Result(request_id, replace(reply, cost_usd=paid))

    def _unanswered(self, request_id: str, said: Any, is_late: bool) -> Result:
        return Result(request_id, None, "expired" if is_late else "failed", self._said(json.dumps(said)))

    def _said(self, text: str) -> str:
        return self._keys.redact(excerpt(text))

    def _ask(self, method: str, path: str, missing_is_fine: bool = False, **more: Any) -> Mapping[str, Any]:
        """Make one request for a JSON object, without a retry."""
        import httpx

        what, params = self._what(method, path), {**self._query, **more.pop("params", {})}
        try:
            with self._http.stream(method, self._base + path, params=params, **more) as answer:
                if missing_is_fine and answer.status_code in _GONE:
                    return {}
                self._require_ok(answer, what)
                content = _whole(answer, what)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise BatchError(f"{what} failed: {type(error).__name__} {error}") from error
        if not (read := _object(content)) and content.strip() != b"{}":
            raise BatchError(
                f"{what} was answered without a JSON object: {self._said(content.decode(errors='replace'))}"
            )
        return read

    def _stream(self, address: str) -> Iterator[Mapping[str, Any]]:
        """Yield the JSON objects of a file of results, one a line."""
        import httpx

        what = self._what("GET", address)
        try:
            with self._http.stream("GET", address, params=self._query) as answer:
                self._require_ok(answer, what)
                begun: list[bytes] = []
                for part in itertools.chain(answer.iter_bytes(), [b"\n"]):
                    first, *others = part.split(b"\n")  # httpx splits at U+2028, too, which JSON may hold
                    begun.append(first)
                    if others:
                        *lines, last = b"".join(begun), *others
                        yield from (_object(line) for line in lines if line.strip())
                        begun = [last]
                    if sum(map(len, begun)) > LARGEST_REPLY:
                        begun = [b"!"]  # with what follows, a line that cannot be read
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise BatchError(f"{what} broke off: {type(error).__name__} {error}") from error

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a list, the newest first. Raises BatchError where the list has no end."""
        before, cursor = list[Any](), self._first_page
        for number in range(1, MOST_PAGES):
            page = self._ask("GET", path, params={**params, **cursor})
            entries = _objects(page.get("data") or page.get("batches") or page.get("results"))
            yield from entries
            following = self._following(page, entries, number) if entries else None
            if following is None:
                return
            if entries == before:
                break
            before, cursor = entries, {**self._first_page, **following}
        raise BatchError(f"{self._what('GET', path)} gives pages without end")

    def _following(self, page: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], number: int) -> Any:
        """Tell the parameters of the page after the first `number` pages; None where there is none."""
        return {self.after: page.get("last_id") or self._id(entries[-1])} if page.get("has_more") else None

    def _require_ok(self, answer: "httpx.Response", what: str) -> None:
        status = answer.status_code
        if status < 300:
            return
        words = self._said(_whole(answer, what).decode(errors="replace"))
        is_refusal = _CLIENT_ERRORS <= status < _SERVER_ERRORS and status not in _MAY_PASS
        said = f"{what} was answered with HTTP {status}: {words}"
        raise BatchError(said, is_refusal=is_refusal, is_gone=status in _GONE)

    def _what(self, method: str, path: str) -> str:
        return f"{self._route.provider}: {method} {path.removeprefix(self._base)}"


def _whole(answer: "httpx.Response", what: str) -> bytes:
    """Read an answer. Raises BatchError where it is larger than can be."""
    content = bytearray()
    for part in answer.iter_bytes():
        content += part
        if len(content) > LARGEST_STREAM:
            raise BatchError(f"{what} was answered with more than {LARGEST_STREAM >> 20} MB")
    return bytes(content)


def _object(line: bytes) -> Mapping[str, Any]:
    """Read a JSON object; one that cannot be read is empty."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def time_of(value: Any) -> datetime | None:
    """Read a time, as seconds since 1970 or in ISO form."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return read.replace(tzinfo=UTC) if read and read.tzinfo is None else read


def _at(job: Any, path: str) -> Any:
    """Look up a path of names; None where one is missing."""
    for name in path.split("."):
        job = job.get(name) if isinstance(job, Mapping) else None
    return job


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value <= _LARGEST_COUNT else 0


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _reason(errors: Any) -> str:
    """Say why a provider refused a whole job."""
    told = (
        ": ".join(str(error[name]) for name in ("code", "message") if error.get(name)) for error in _objects(errors)
    )
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
    _first_page: ClassVar[Mapping[str, Any]] = {"page_size": PAGE, "page": 0}

    def _line(self, request_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": request_id, "body": {name: value for name, value in body.items() if name != "model"}}

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        return {"input_files": [file], "endpoint": self._endpoint, "model": self._model, "metadata": {JOB: job_id}}

    def _following(self, page: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], number: int) -> Any:
        return {"page": number} if len(entries) == PAGE else None


class _XAIForm(BatchService):
    """xAI's form: a job has a name and counters, and its results are pages of a list."""

    clocks = timedelta(hours=25)  # its times may be mere days

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        return {"name": f"{JOB} {job_id}", "input_file_id": file}

    def _name(self, job: Mapping[str, Any]) -> Any:
        return str(job.get("name")).removeprefix(f"{JOB} ")

    def _following(self, page: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], number: int) -> Any:
        return {"pagination_token": token} if (token := page.get("pagination_token")) else None

    def cancel(self, provider_id: str) -> None:
        self._ask("POST", f"{self.jobs}/{provider_id}:cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        for each in self._pages(f"{self.jobs}/{job.provider_id}/results"):
            response, error = (_at(each, f"batch_result.{name}") for name in ("response", "error"))
            body = next(iter(response.values()), None) if isinstance(response, dict) else None  # by its endpoint's name
            answer = {"response": {"status_code": 200, "body": body}} if body else {"error": error}
            yield {"custom_id": each.get("batch_request_id"), **answer}

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        names = ("num_requests", "num_pending", "num_success", "num_error", "num_cancelled")
        all_of_them, pending, done, *failed = (_count(_at(job, f"state.{name}")) for name in names)
        refused = job.get("cancel_by_xai_message")
        is_over = all_of_them > 0 and pending == 0
        is_cancelled = bool(job.get("cancel_time"))
        return ProviderJob(
            self._id(job, "batch_id"),
            "cancelled" if is_cancelled else "completed" if is_over else "in_progress",
            is_cancelled or is_over,
            done,
            sum(failed),
            time_of(job.get("expire_time")),
            excerpt(str(refused)) if refused and not done else None,
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
            counts = each.get("request_counts")
            if sum(map(_count, counts.values() if isinstance(counts, dict) else ())) != requests:
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
        if (kind := _at(result, "type")) == "succeeded":
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
