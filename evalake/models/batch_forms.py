"""The forms of batch jobs: OpenAI's (also of Azure, Groq, vLLM), Mistral's and xAI's after it, and Anthropic's."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from evalake.core.errors import ProviderError
from evalake.core.redaction import KnownKeys
from evalake.models.batches import PAGE, BatchError, BatchService, ProviderJob, Requests, Result, time_of
from evalake.models.direct import warm_up
from evalake.models.direct_models import DIRECT, encoded
from evalake.models.failures import excerpt
from evalake.models.request import Request
from evalake.models.routes import Route

JOB = "evalake_job"  # names our job in the metadata of the provider's
_CHAT, _MESSAGES = "/chat/completions", "/v1/messages"
_LATE = ("batch_expired", "batch_cancelled")


class _OpenAIForm(BatchService):
    """OpenAI's form: a file of requests is uploaded, and a job names it."""

    jobs: ClassVar[str] = "/batches"

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
        content = b"\n".join(encoded(self._line(request_id, self.body(request))) for request_id, request in requests)
        sent = self._ask("POST", "/files", data={"purpose": "batch"}, files={"file": (name, content)})
        return str(sent["id"])

    def _line(self, request_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": request_id, "method": "POST", "url": self._endpoint, "body": body}

    def submit(self, job_id: str, file: str | None, requests: Requests) -> ProviderJob:
        return self._job(self._ask("POST", self.jobs, json=self._order(job_id, file)))

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        window = {"completion_window": "24h", "metadata": {JOB: job_id}}
        return {"input_file_id": file, "endpoint": self._endpoint, **window}

    def find(self, job_id: str, since: datetime, requests: int) -> ProviderJob | None:
        for job in self._pages(self.jobs):
            if self._name(job) == job_id:
                return self._job(job)
            if (created := time_of(job.get("created_at"))) is not None and created < since - self.clocks:
                return None
        return None

    def _name(self, job: Mapping[str, Any]) -> Any:
        return (job.get("metadata") or {}).get(JOB)

    def look(self, provider_id: str) -> ProviderJob:
        return self._job(self._ask("GET", f"{self.jobs}/{provider_id}"))

    def cancel(self, provider_id: str) -> None:
        self._ask("POST", f"{self.jobs}/{provider_id}/cancel")

    def lines(self, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        for file in job.files:
            yield from self._stream(f"{self._base}/files/{file}/content")

    def result(self, line: Mapping[str, Any], request: Request) -> Result:
        request_id, answer = str(line.get("custom_id")), line.get("response") or {}
        if answer.get("status_code") == 200 and not line.get("error"):
            return self._read(request_id, answer.get("body"), request)
        error = line.get("error") or (answer.get("body") or {}).get("error") or answer
        is_late = isinstance(error, Mapping) and error.get("code") in _LATE
        message = self._keys.redact(excerpt(json.dumps(error)))
        return Result(request_id, None, "expired" if is_late else "failed", message)

    def delete(self, provider_id: str | None, file: str | None) -> None:
        job = self._ask("GET", f"{self.jobs}/{provider_id}", missing_is_fine=True) if provider_id else {}
        for each in (file, *(self._job(job).files if job else ())):
            if each is not None:
                self._ask("DELETE", f"/files/{each}", missing_is_fine=True)

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        counts, state = job.get("request_counts") or {}, str(job.get("status"))
        return ProviderJob(
            str(job["id"]),
            state,
            state in ("completed", "failed", "expired", "cancelled"),
            int(counts.get("completed") or 0),
            int(counts.get("failed") or 0),
            time_of(job.get("expires_at")),
            _reason((job.get("errors") or {}).get("data")) if state == "failed" else None,
            _named(job, "output_file_id", "error_file_id"),
        )


class _MistralForm(_OpenAIForm):
    """Mistral's form: the job names the model, and lists are numbered pages."""

    jobs = "/batch/jobs"

    def _line(self, request_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": request_id, "body": {name: value for name, value in body.items() if name != "model"}}

    def _order(self, job_id: str, file: str | None) -> Mapping[str, Any]:
        model = self._model({}).model
        return {"input_files": [file], "endpoint": self._endpoint, "model": model, "metadata": {JOB: job_id}}

    def _pages(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        entries: list[Mapping[str, Any]] = [{}] * PAGE
        number = 0
        while len(entries) == PAGE:
            page = self._ask("GET", path, params={**params, "page_size": PAGE, "page": number})
            entries = page.get("data") or []
            yield from entries
            number += 1

    def _job(self, job: Mapping[str, Any]) -> ProviderJob:
        state, files = str(job.get("status")), _named(job, "output_file", "error_file")
        return ProviderJob(
            str(job["id"]),
            state.lower(),
            state in ("SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED"),
            int(job.get("succeeded_requests") or 0),
            int(job.get("failed_requests") or 0),
            None,
            _reason(job.get("errors")) if state == "FAILED" and not files else None,
            files,
        )


class _XAIForm(_OpenAIForm):
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
        for each in self._pages(""):
            if (created := time_of(each.get("created_at"))) is not None and created < since - self.clocks:
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

    def _following(self, page: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        return {"after_id": page.get("last_id") or entries[-1]["id"]} if page.get("has_more") else None

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
        return ProviderJob(str(job["id"]), state, ended, done, failed, time_of(job.get("expires_at")))


_FORMS: Mapping[str, type[BatchService]] = {
    "anthropic": _AnthropicForm,
    "azure": _OpenAIForm,
    "groq": _OpenAIForm,
    "hosted_vllm": _OpenAIForm,
    "mistral": _MistralForm,
    "openai": _OpenAIForm,
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
            f'set batch = false under [models."{route.model}"] (there are jobs for {", ".join(_FORMS)})'
        )
    if not DIRECT[route.provider].possible(route):
        names = ", ".join(DIRECT[route.provider].unless_set)
        raise ProviderError(f"batch jobs of {route.model} need another setup than one of {names} gives: unset it")


def _reason(errors: Any) -> str:
    """Say why a provider refused a whole job."""
    return excerpt("; ".join(str(error.get("message")) for error in errors or []) or "no reason given")


def _named(job: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """List the files that a job names."""
    return tuple(str(job[name]) for name in names if job.get(name))
