"""Batch jobs of providers: submits requests as one job, follows it, reads its results, and deletes its files.

    service = batch_service(route, keys)
    file = service.upload(job_id, requests)
    job = service.submit(job_id, file, requests)
    while not job.ended: job = service.look(job.provider_id)
    for result in service.results(job): …

Two forms: OpenAI's, which Azure, Groq and vLLM share, and Anthropic's. LiteLLM maps the requests and reads the answers,
as for single calls. The jobs themselves are plain HTTP, since LiteLLM cannot create Anthropic's, and OpenAI's client
repeats a submission whose answer was lost, which would be paid twice.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.cost import batch_share, messages_of
from evalake.models.direct import read_whole, warm_up
from evalake.models.direct_models import DIRECT, DirectModel, encoded
from evalake.models.failures import AttemptFailed, excerpt
from evalake.models.replies import reply_of
from evalake.models.request import Reply, Request
from evalake.models.routes import Route
from evalake.models.transport import Answer

if TYPE_CHECKING:
    import httpx

JOB = "evalake_job"  # names our job in the metadata of the provider's
TIMEOUT_SECONDS = 600.0  # of an upload or a download
PAGE = 100  # jobs or files of a list
CLOCKS = timedelta(hours=1)  # by which a provider's clock may differ from ours
_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500
_MAY_PASS = frozenset({408, 409, 425, 429})
_CHAT, _MESSAGES = "/chat/completions", "/v1/messages"


class BatchError(ProviderError):
    """A provider did not do what was asked about a job. `is_refusal`: it did understand, and it refuses."""

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


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
        if missing_is_fine and answer.status_code in (404, 410):
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

    def _pages(self, path: str, name: str = "after", **params: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a list, the newest first."""
        cursor: dict[str, Any] = {}
        while True:
            page = self._ask("GET", path, params={**params, "limit": PAGE, **cursor})
            entries = page.get("data") or []
            yield from entries
            if not entries or not page.get("has_more"):
                return
            cursor = {name: page.get("last_id") or entries[-1]["id"]}

    def _require_ok(self, answer: "httpx.Response", method: str, path: str) -> None:
        status = answer.status_code
        if status < 300:
            return
        words = self._keys.redact(excerpt(answer.text))
        is_refusal = _CLIENT_ERRORS <= status < _SERVER_ERRORS and status not in _MAY_PASS
        raise BatchError(f"{self._what(method, path)} was answered with HTTP {status}: {words}", is_refusal=is_refusal)

    def _what(self, method: str, path: str) -> str:
        return f"{self._route.provider}: {method} {path.removeprefix(self._base)}"


class _OpenAIForm(BatchService):
    """OpenAI's form: a file of requests is uploaded, and a job names it."""

    def base_of(self, address: str) -> str:
        base = address.removesuffix(_CHAT)
        return base.partition("/deployments/")[0]  # of Azure

    @property
    def _endpoint(self) -> str:
        return _CHAT if self._route.provider == "azure" else f"/v1{_CHAT}"

    def upload(self, job_id: str, requests: Requests) -> str | None:
        name = f"evalake-{job_id}.jsonl"
        for file in self._pages("/files", purpose="batch"):
            if file.get("filename") == name:
                return str(file["id"])
        lines = (
            {"custom_id": request_id, "method": "POST", "url": self._endpoint, "body": self.body(request)}
            for request_id, request in requests
        )
        content = b"\n".join(map(encoded, lines))
        sent = self._ask("POST", "/files", data={"purpose": "batch"}, files={"file": (name, content)})
        return str(sent["id"])

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        asked = {
            "input_file_id": file,
            "endpoint": self._endpoint,
            "completion_window": "24h",
            "metadata": {JOB: job_id},
        }
        return self._job(self._ask("POST", "/batches", json=asked))

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        for job in self._pages("/batches"):
            if (job.get("metadata") or {}).get(JOB) == job_id:
                return self._job(job)
            if (created := _time(job.get("created_at"))) is not None and created < since - CLOCKS:
                return None
        return None

    def look(self, provider_id: str) -> ProviderJob:
        return self._job(self._ask("GET", f"/batches/{provider_id}"))

    def cancel(self, provider_id: str) -> None:
        self._ask("POST", f"/batches/{provider_id}/cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        for file in job.files:
            yield from self._stream(f"{self._base}/files/{file}/content")

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        request_id, answer = str(line.get("custom_id")), line.get("response") or {}
        if answer.get("status_code") == 200 and not line.get("error"):
            return self._read(request_id, answer.get("body"), request)
        error = line.get("error") or (answer.get("body") or {}).get("error") or answer
        code = error.get("code") if isinstance(error, Mapping) else None
        is_late = code in ("batch_expired", "batch_cancelled")
        return Result(
            request_id, None, "expired" if is_late else "failed", self._keys.redact(excerpt(json.dumps(error)))
        )

    def delete(self, provider_id: str | None, file: str | None) -> None:
        for each in (file, *(self.look(provider_id).files if provider_id else ())):
            if each is not None:
                self._ask("DELETE", f"/files/{each}", missing_is_fine=True)

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        counts, state = job.get("request_counts") or {}, str(job.get("status"))
        errors = [str(error.get("message")) for error in (job.get("errors") or {}).get("data") or []]
        return ProviderJob(
            str(job["id"]),
            state,
            state in ("completed", "failed", "expired", "cancelled"),
            int(counts.get("completed") or 0),
            int(counts.get("failed") or 0),
            _time(job.get("expires_at")),
            excerpt("; ".join(errors) or "no reason given") if state == "failed" else None,
            tuple(str(job[name]) for name in ("output_file_id", "error_file_id") if job.get(name)),
        )


class _AnthropicForm(BatchService):
    """Anthropic's form: the job holds its requests. It has no metadata, but its requests' ids name our job."""

    most_requests = 100_000

    def base_of(self, address: str) -> str:
        return f"{address.removesuffix(_MESSAGES)}{_MESSAGES}/batches"

    def upload(self, job_id: str, requests: Requests) -> str | None:
        return None

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        asked = [{"custom_id": request_id, "params": self.body(request)} for request_id, request in requests]
        headers = {"content-type": "application/json"}
        return self._job(self._ask("POST", "", content=encoded({"requests": asked}), headers=headers))

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        running = None
        for each in self._pages("", name="after_id"):
            if (created := _time(each.get("created_at"))) is not None and created < since - CLOCKS:
                break
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

    def look(self, provider_id: str) -> ProviderJob:
        return self._job(self._ask("GET", f"/{provider_id}"))

    def cancel(self, provider_id: str) -> None:
        self._ask("POST", f"/{provider_id}/cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        return self._stream(f"{self._base}/{job.provider_id}/results")

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        request_id, result = str(line.get("custom_id")), line.get("result") or {}
        kind = result.get("type")
        if kind == "succeeded":
            return self._read(request_id, result.get("message"), request)
        message = self._keys.redact(excerpt(json.dumps(result)))
        return Result(request_id, None, "expired" if kind in ("expired", "canceled") else "failed", message)

    def delete(self, provider_id: str | None, file: str | None) -> None:
        if provider_id is not None:
            self._ask("DELETE", f"/{provider_id}", missing_is_fine=True)

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        counts, state = job.get("request_counts") or {}, str(job.get("processing_status"))
        failed = sum(int(counts.get(name) or 0) for name in ("errored", "expired", "canceled"))
        done, ended = int(counts.get("succeeded") or 0), state == "ended"
        return ProviderJob(str(job["id"]), state, ended, done, failed, _time(job.get("expires_at")))


_FORMS: Mapping[str, type[BatchService]] = {
    "anthropic": _AnthropicForm,
    "azure": _OpenAIForm,
    "groq": _OpenAIForm,
    "hosted_vllm": _OpenAIForm,
    "openai": _OpenAIForm,
}


def batch_service(route: Route, keys: KnownKeys) -> BatchService:
    """Open the batch jobs of a model. Raises ProviderError where its provider has none that evalake reaches."""
    require_batches(route)
    _warm_up()
    return _FORMS[route.provider](route, keys)


@cache
def _warm_up() -> None:
    """Import the parts of LiteLLM that read answers, without its warnings."""
    warm_up()


def require_batches(route: Route) -> None:
    """Raise ProviderError where evalake reaches no batch jobs of a model's provider."""
    if route.provider not in _FORMS:
        raise ProviderError(
            f"evalake reaches no batch jobs of {route.provider}, the provider of {route.model}: leave --batch out, or "
            f'set batch = false under [models."{route.model}"] (there are jobs for {", ".join(_FORMS)})'
        )
    if not DIRECT[route.provider].possible(route):
        names = ", ".join(DIRECT[route.provider].unless_set)
        raise ProviderError(f"batch jobs of {route.model} need another setup than one of {names} gives: unset it")


def _object(line: str) -> Mapping[str, Any]:
    """Read a line of results; one that cannot be read answers no request."""
    try:
        read = json.loads(line)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _time(value: Any) -> datetime | None:
    """Read a time, as seconds since 1970 or in ISO form."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
