"""The batch jobs of providers that differ from OpenAI's form: Mistral's and xAI's in names, Anthropic's as a whole."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.batches import JOB, PAGE, BatchError, BatchService, ProviderJob, Requests, Result, Shape, time_of
from evalake.models.direct import encoded, warm_up
from evalake.models.failures import excerpt
from evalake.models.request import Request
from evalake.models.routes import Route

_MESSAGES = "/v1/messages"


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
        return f"{address.removesuffix(_MESSAGES)}{_MESSAGES}/batches"

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
