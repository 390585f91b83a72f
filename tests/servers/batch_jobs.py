"""Batch jobs of the model server, in the forms of OpenAI, Anthropic, Mistral and xAI (below /xai), by its rules.

A job ends when it is looked at or listed first, unless `held`. Its results come in reverse order, each twice after a
failure. What stands in `expires` or `fails` (texts of a prompt) ends so. `drops` names operations whose answer is lost
after they were done.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

from aiohttp import web

from tests.servers.model_answers import anthropic_message

Body = Mapping[str, Any]
FORMS = {"anthropic": "/messages/", "mistral": "/batch/jobs", "xai": "/xai/"}  # and a part of their addresses
FULL = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached for guard. Limit: 90,000 tokens."}
CREATED = 4_000_000_000  # seconds since 1970: no job is older than the search for it


@dataclass
class Job:
    """One job: the lines of its requests, and how it ended."""

    lines: list[dict[str, Any]]
    metadata: Body = field(default_factory=dict)
    state: str = "open"  # then: ended, cancelled; or failed at once
    results: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0


class BatchJobs:
    """All files and jobs of a server. `answer` gives the JSON of the chat completion to a body."""

    def __init__(self, answer: Callable[[Body], bytes]) -> None:
        self._answer = answer
        self.files: dict[str, tuple[str, bytes]] = {}
        self.jobs: dict[str, Job] = {}
        self.paid: Counter[str] = Counter()  # prompts that were answered in jobs
        self.operations: list[str] = []
        self.held = False
        self.cuts = 0  # characters of the last result of a file, at its beginning
        self.repeats = True  # each result comes three times, the first of them a failure
        self.refuses: str | None = None  # why every job ends as refused
        self.most: int | None = None  # requests of open jobs; one beyond that fails, as OpenAI's queued tokens do
        self.expires: set[str] = set()
        self.fails: set[str] = set()
        self.drops: set[str] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """Answer a request about files or jobs; None for any other."""
        path, method = request.path.removeprefix("/xai").removeprefix("/v1"), request.method
        if not path.startswith(("/files", "/batches", "/messages/batches", "/batch/jobs")):
            return None
        form = next((name for name, part in FORMS.items() if part in request.path), "openai")
        path = path.removeprefix("/messages").replace("/batch/jobs", "/batches").replace(":cancel", "/cancel")
        kind, *rest = path.strip("/").split("/")
        named = rest[0] if rest else ""
        operation = f"{method} {kind}" + (f" {rest[1]}" if rest[1:] else "" if not rest else " one")
        self.operations.append(operation)
        done = self._do(method, kind, named, rest[1:], await request.content.read(), request, form)
        if operation in self.drops:
            self.drops.discard(operation)
            assert request.transport is not None
            request.transport.abort()
        if done is None:
            return web.json_response({"error": {"message": "no such thing"}}, status=404)
        if isinstance(done, list):
            lines = [json.dumps(line, ensure_ascii=False) for line in done]
            return web.Response(body="\n".join([*lines[:-1], *(line[self.cuts :] for line in lines[-1:])]).encode())
        return web.json_response(done)

    def _do(self, method: str, kind: str, named: str, rest: list[str], body: bytes, request: Any, form: str) -> Any:
        if kind == "files":
            return self._file(method, named, rest, body, request)
        if method == "POST" and not named:
            asked = json.loads(body)
            lines = asked.get("requests") or [
                json.loads(line)
                for line in self.files[asked.get("input_file_id") or asked["input_files"][0]][1].split(b"\n")
            ]
            kept = {**(asked.get("metadata") or {}), "name": asked.get("name"), "model": asked.get("model")}
            queued = len(lines) + sum(len(job.lines) for job in self.jobs.values() if job.state == "open")
            is_taken = self.most is None or queued <= self.most
            self.jobs[name := f"batch_{len(self.operations)}"] = Job(lines, kept, "open" if is_taken else "failed")
            return self._shown(name, form)
        if not named:
            for name in () if self.held else self.jobs:
                self._finish(name, form)
            shown = [self._shown(name, form) for name in reversed(self.jobs)]
            return {"batches" if form == "xai" else "data": shown, "has_more": False}
        if named not in self.jobs:
            return None
        job = self.jobs[named]
        if method == "DELETE":
            del self.jobs[named]
            return {"id": named}
        if rest == ["results"]:
            return {"results": job.results} if form == "xai" else job.results
        if rest == ["cancel"] and job.state == "open":
            job.state = "cancelled"
        elif not self.held:
            self._finish(named, form)
        return self._shown(named, form)

    def _file(self, method: str, named: str, rest: list[str], body: bytes, request: Any) -> Any:
        if method == "POST":
            head = b"Content-Type: " + request.headers["Content-Type"].encode() + b"\r\n\r\n"
            parts = message_from_bytes(head + body, policy=HTTP).iter_parts()
            part: Any = next(part for part in parts if part.get_filename())
            self.files[name := f"file-{len(self.operations)}"] = part.get_filename(), part.get_payload(decode=True)
            return {"id": name}
        if not named:
            return {
                "data": [{"id": name, "filename": file} for name, (file, _) in self.files.items()],
                "has_more": False,
            }
        if method == "DELETE":
            return {"id": named} if self.files.pop(named, None) else None
        return [json.loads(line) for line in self.files[named][1].split(b"\n") if line]

    def _finish(self, name: str, form: str) -> None:
        job = self.jobs[name]
        if job.state != "open":
            return
        job.state = "ended"
        results: list[list[dict[str, Any]]] = []
        for line in [] if self.refuses else job.lines:
            body = {"model": job.metadata.get("model"), **(line.get("params") or line["body"])}
            prompt = json.dumps(body["messages"])
            late, broken = (any(text in prompt for text in texts) for texts in (self.expires, self.fails))
            if not late and not broken:
                self.paid[prompt] += 1
            job.failed += late or broken
            made = {"anthropic": _anthropic_result, "xai": _xai_result}.get(form, _openai_result)
            told = made(line["custom_id"], None if late or broken else json.loads(self._answer(body)), late=late)
            results.append([made(line["custom_id"], None, late=False), told, told] if self.repeats else [told])
        job.results = [told for each in reversed(results) for told in each]
        if form in ("openai", "mistral") and job.results:
            self.files[f"out-{name}"] = name, b"\n".join(json.dumps(line).encode() for line in job.results)

    def _shown(self, name: str, form: str) -> dict[str, Any]:
        job = self.jobs[name]
        ended, total = job.state != "open", len(job.lines)
        done = total - job.failed if job.state == "ended" else 0
        if form == "anthropic":
            counts = {"processing": 0 if ended else total, "succeeded": done, "errored": total - done if ended else 0}
            state = "ended" if ended else "in_progress"
            return {
                "id": name,
                "processing_status": state,
                "request_counts": counts,
                "expires_at": "2096-10-02T08:00:00Z",
            }
        out = f"out-{name}" if f"out-{name}" in self.files else None
        if form == "xai":
            counts = {"num_requests": total, "num_pending": 0 if job.state == "ended" else total}
            counts |= {"num_success": done, "num_error": job.failed}
            is_over = "2096-10-02" if job.state == "cancelled" else None
            return {"batch_id": name, "name": job.metadata["name"], "state": counts, "cancel_time": is_over}
        if form == "mistral":
            state = {"open": "RUNNING", "ended": "SUCCESS"}.get(job.state, "CANCELLED")
            counts = {"succeeded_requests": done, "failed_requests": job.failed}
            return {"id": name, "status": state, "metadata": job.metadata, **counts, "output_file": out}
        state = (
            "failed"
            if job.state == "ended" and self.refuses
            else {"open": "in_progress", "ended": "completed"}.get(job.state, job.state)
        )
        return {
            "id": name,
            "status": state,
            "metadata": job.metadata,
            "created_at": CREATED,
            "expires_at": CREATED,
            "request_counts": {"total": total, "completed": done, "failed": job.failed},
            "output_file_id": out,
            "errors": {"data": [{"message": self.refuses} if self.refuses else FULL]} if state == "failed" else None,
        }


def _openai_result(name: str, answer: Any, *, late: bool) -> dict[str, Any]:
    if answer is not None:
        return {"custom_id": name, "response": {"status_code": 200, "body": answer}, "error": None}
    if late:
        return {"custom_id": name, "response": None, "error": {"code": "batch_expired", "message": "too late"}}
    return {"custom_id": name, "response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}}}


def _xai_result(name: str, answer: Any, *, late: bool) -> dict[str, Any]:
    given = {"response": {"chat_get_completion": answer}} if answer else {"error": {"code": 8, "message": f"{late}"}}
    return {"batch_request_id": name, "batch_result": given}


def _anthropic_result(name: str, answer: Any, *, late: bool) -> dict[str, Any]:
    if answer is None:
        kind = {"type": "expired"} if late else {"type": "errored", "error": {"type": "overloaded_error"}}
        return {"custom_id": name, "result": kind}
    return {"custom_id": name, "result": {"type": "succeeded", "message": anthropic_message(answer)}}
