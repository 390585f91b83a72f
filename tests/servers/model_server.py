"""A local OpenAI-compatible model server for tests and benchmarks: answers by rule, misbehaves on request, counts.

In the process: `with ModelServer() as server: server.rule(contains="rm -rf", reply="…"); server.api_base`.
As its own process: `python -m tests.servers.model_server --port 0` prints the address on its first line; rules are
given by `--rules '[{"reply": "…"}]'` or `POST /_rules`, and read back by `GET /_counts`, `GET /_requests`;
`POST /_reset` forgets what was counted and keeps the rules.
"""

import argparse
import asyncio
import json
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from core.hashing import content_hash

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Rule:
    """What requests of a kind are answered. Later rules win over earlier ones.

    `faults` are played in order for each distinct prompt, each as often as its `times` says (0: for ever); then the
    reply is given. A fault is a mapping with `kind` (a key of FAULTS), `times` (default 1) and what its kind reads.
    """

    model: str | None = None  # the model's name as the server sees it (without provider prefix); None: any
    contains: str | None = None  # text that some message holds; None: any
    reply: str | Callable[[Messages], str] | None = "ok"
    latency: float = 0.0  # seconds before the answer
    pause: float = 0.0  # seconds before each piece of an answer that is asked for in pieces
    pieces: int = 4  # in which its text comes then
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    )
    message: Mapping[str, Any] = field(default_factory=dict)  # further fields of the reply's message
    faults: tuple[Mapping[str, Any], ...] = ()

    def matches(self, model: str, messages: Messages) -> bool:
        """Whether this rule answers such a request."""
        if self.model is not None and self.model != model:
            return False
        return self.contains is None or any(self.contains in str(message.get("content")) for message in messages)


@dataclass(slots=True)
class Seen:
    """One request as it came in. Times are seconds of the server's monotonic clock."""

    key: str
    model: str
    content: str  # of the last message
    started: float
    ended: float | None = None
    status: int | None = None  # of the answer; None while in flight, or where no whole answer was sent
    fault: str | None = None
    authorization: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


def prompt_key(model: str, messages: Messages) -> str:
    """The server's name for a prompt: `model` without provider prefix, and the messages."""
    return content_hash([model, [dict(message) for message in messages]])


class ModelServer:
    """The server. As a context manager it runs on a thread of its own, on a free port."""

    def __init__(self, rules: Sequence[Rule] = (), host: str = "127.0.0.1", port: int = 0, keep_bodies: bool = True):
        self.rules = list(rules)
        self.seen: list[Seen] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self._host, self._port, self._keep_bodies = host, port, keep_bodies
        self._played: Counter[tuple[int, str]] = Counter()
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    # What tests say and ask.

    @property
    def address(self) -> str:
        """Where the server listens, such as http://127.0.0.1:40123."""
        return f"http://{self._host}:{self._port}"

    @property
    def api_base(self) -> str:
        """The address to configure as a model's `api_base`."""
        return f"{self.address}/v1"

    def rule(self, **fields: Any) -> None:
        """Add a Rule; it wins over the earlier ones."""
        self.rules.append(Rule(**fields))

    def requests(self, contains: str = "", model: str | None = None) -> list[Seen]:
        """The requests so far whose last message holds `contains`, in order of arrival."""
        return [seen for seen in self.seen if contains in seen.content and model in (None, seen.model)]

    def counts(self) -> dict[str, Any]:
        """Requests in all, by prompt key and by model, answered with 200 by prompt key, and the most at once."""
        return {
            "requests": len(self.seen),
            "answered": sum(seen.status == 200 for seen in self.seen),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "by_model": Counter(seen.model for seen in self.seen),
            "by_prompt": Counter(seen.key for seen in self.seen),
            "answered_by_prompt": Counter(seen.key for seen in self.seen if seen.status == 200),
        }

    def reset(self) -> None:
        """Forget every request and every fault played; keep the rules."""
        self.seen.clear()
        self._played.clear()
        self.max_in_flight = self.in_flight

    # How it runs.

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), name="model-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()

    async def serve(self, announce: Callable[[str], None] | None = None) -> None:
        """Serve until stopped; `announce` is told the address once the port is open."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host, self._port, backlog=1024)
            await site.start()
            self._port = runner.addresses[0][1]
            if announce:
                announce(self.address)
            self._ready.set()
            await self._stop.wait()
        finally:
            self._ready.set()
            await runner.cleanup()

    # What it answers.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/chat/completions") and request.method == "POST":
            return await self._chat(request)
        if request.path == "/_counts":
            return web.json_response(self.counts())
        if request.path == "/_requests":
            return web.json_response([asdict(seen) for seen in self.seen])
        if request.path == "/_reset" and request.method == "POST":
            self.reset()
            return web.json_response({})
        if request.path == "/_rules" and request.method == "POST":
            self.rules = [Rule(**fields) for fields in await request.json()]
            return web.json_response({})
        return web.json_response({"error": {"message": f"no such path {request.path}"}}, status=404)

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.read())
        messages, model = body["messages"], body["model"]
        seen = Seen(
            key=prompt_key(model, messages),
            model=model,
            content=str(messages[-1].get("content")) if messages else "",
            started=time.monotonic(),
            authorization=request.headers.get("Authorization"),
            body=body if self._keep_bodies else {},
        )
        self.seen.append(seen)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            rule = next((rule for rule in reversed(self.rules) if rule.matches(model, messages)), Rule())
            if rule.latency:
                await asyncio.sleep(rule.latency)
            fault = self._next_fault(rule, seen.key)
            response: web.StreamResponse
            if fault is None and body.get("stream"):
                response = await _streamed(request, _pieces(rule, body), rule.pause)
            elif fault is None:
                response = web.Response(body=_completion(rule, body), content_type=_JSON)
            else:
                seen.fault = fault["kind"]
                response = await FAULTS[fault["kind"]](request, rule, body, fault)
            seen.status = response.status
            return response
        finally:
            seen.ended = time.monotonic()
            self.in_flight -= 1

    def _next_fault(self, rule: Rule, key: str) -> Mapping[str, Any] | None:
        """The fault this prompt meets now, by how many it has met; None where the reply's turn has come."""
        if not rule.faults:
            return None
        number = self._played[id(rule), key]
        self._played[id(rule), key] += 1
        for fault in rule.faults:
            times = fault.get("times", 1)
            if times == 0 or number < times:
                return fault
            number -= times
        return None


_JSON = "application/json"
_BASE = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000}


def _completion(rule: Rule, body: Mapping[str, Any], **change: Any) -> bytes:
    """The JSON of a chat completion as the rule says; `change` replaces fields of it."""
    text = rule.reply(body["messages"]) if callable(rule.reply) else rule.reply
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **rule.message},
        "finish_reason": rule.finish_reason,
    }
    whole = {**_BASE, "model": body["model"], "choices": [choice], **change}
    if rule.usage is not None:
        whole["usage"] = dict(rule.usage)
    return json.dumps(whole).encode()


def _pieces(rule: Rule, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The chunks of a streamed chat completion as the rule says, with the usage where it is asked for."""
    whole = json.loads(_completion(rule, body))
    message, text = whole["choices"][0]["message"], whole["choices"][0]["message"].pop("content") or ""
    length = max(1, -(-len(text) // rule.pieces))
    deltas = [
        {**message, "content": None},
        *({"content": text[at : at + length]} for at in range(0, len(text), length)),
    ]
    chunk = {**_BASE, "object": "chat.completion.chunk", "model": body["model"]}
    said = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    said.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": rule.finish_reason}]})
    if rule.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        said.append({**chunk, "choices": [], "usage": dict(rule.usage)})
    return said


async def _begun(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def _say(response: web.StreamResponse, chunks: Sequence[Mapping[str, Any]], pause: float = 0.0) -> None:
    for chunk in chunks:
        if pause:
            await asyncio.sleep(pause)
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


async def _streamed(request: web.BaseRequest, chunks: Sequence[Mapping[str, Any]], pause: float) -> web.StreamResponse:
    response = await _begun(request)
    await _say(response, chunks, pause)
    await response.write(b"data: [DONE]\n\n")
    return response


Fault = Callable[[web.BaseRequest, Rule, Mapping[str, Any], Mapping[str, Any]], Any]


def _error(status: int, kind: str, code: str | None, message: str) -> Fault:
    """An answer with an error in OpenAI's form; the fault's `message`, `headers`, `retry_after` are put in if given."""

    async def answer(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
        headers = dict(fault.get("headers", {}))
        if "retry_after" in fault:
            headers["Retry-After"] = str(fault["retry_after"])
        error = {"message": fault.get("message", message), "type": kind, "param": None, "code": code}
        return web.json_response({"error": error}, status=fault.get("status", status), headers=headers)

    return answer


def _body(make: Callable[[Rule, Mapping[str, Any]], bytes], content_type: str = _JSON) -> Fault:
    """An answer with status 200 and a body that should not be."""

    async def answer(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
        return web.Response(body=make(rule, body), content_type=content_type)

    return answer


async def _hang(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def _drop(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


async def _truncated(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    whole = _completion(rule, body)
    response = web.StreamResponse(headers={"Content-Length": str(len(whole)), "Content-Type": _JSON})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _slow_drip(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """White space now and then, which is valid JSON so far and never lets a read time out."""
    response = web.StreamResponse(headers={"Content-Type": _JSON})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(fault.get("every", 0.02))


async def _stream_cut(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream; then the connection is gone."""
    response = await _begun(request)
    await _say(response, _pieces(rule, body)[:2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _stream_ended(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, which ends in good order before the answer does."""
    response = await _begun(request)
    await _say(response, _pieces(rule, body)[:2])
    return response


async def _stream_error(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, and an error with the fault's `code` in place of the rest."""
    response = await _begun(request)
    error = {"message": "the engine stopped", "type": "server_error", "code": fault.get("code")}
    await _say(response, [*_pieces(rule, body)[:2], {"error": error}])
    return response


async def _stream_silent(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, and no more."""
    await _say(await _begun(request), _pieces(rule, body)[:2])
    return await _hang(request, rule, body, fault)


async def _stream_endless(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """A stream that always has one more piece."""
    response = await _begun(request)
    while True:
        await _say(response, _pieces(rule, body)[1:2], fault.get("every", 0.02))


async def _gzip_bomb(request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> Any:
    """A gigabyte of blanks, or as many `megabytes`, packed into a thousandth of that."""
    packed = _packed_blanks(fault.get("megabytes", 1024))
    return web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": _JSON})


@cache
def _packed_blanks(megabytes: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(b" " * 2**20) for _ in range(megabytes)) + packer.flush()


FAULTS: Mapping[str, Fault] = {
    "rate_limit": _error(429, "rate_limit_exceeded", "rate_limit_exceeded", "Rate limit reached"),
    "server_error": _error(500, "server_error", None, "The server had an error"),
    "unauthorized": _error(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    "forbidden": _error(403, "invalid_request_error", None, "You are not allowed to use this model"),
    "not_found": _error(404, "invalid_request_error", "model_not_found", "The model does not exist"),
    "bad_request": _error(400, "invalid_request_error", None, "Unsupported value"),
    "context_length": _error(
        400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens"
    ),
    "content_policy": _error(
        400, "invalid_request_error", "content_policy_violation", "Your request was rejected by the safety system"
    ),
    "content_filter_code": _error(400, "invalid_request_error", "content_filter", "The prompt was filtered"),
    "no_credit": _error(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota"),
    "payment": _error(402, "payment_required", None, "Insufficient balance"),
    "hang": _hang,
    "drop": _drop,
    "truncated": _truncated,
    "slow_drip": _slow_drip,
    "stream_cut": _stream_cut,
    "stream_ended": _stream_ended,
    "stream_error": _stream_error,
    "stream_silent": _stream_silent,
    "stream_endless": _stream_endless,
    "gzip_bomb": _gzip_bomb,
    "huge": _body(lambda rule, body: _completion(Rule(reply="x" * 50 * 2**20), body)),
    "invalid_utf8": _body(lambda rule, body: _completion(Rule(reply="BLOCK?"), body).replace(b"?", b"\xff\xfe\xc3")),
    "empty_body": _body(lambda rule, body: b""),
    "html": _body(lambda rule, body: b"<html><body>Bad gateway</body></html>", "text/html"),
    "garbage": _body(lambda rule, body: b"\xff\xfe{not json"),
    "wrong_json": _body(lambda rule, body: b'{"hello": ["world"]}'),
    "json_array": _body(lambda rule, body: b"[1, 2, 3]"),
    "deep_json": _body(lambda rule, body: b"[" * 100_000),
    "empty_choices": _body(lambda rule, body: _completion(rule, body, choices=[])),
    "null_choices": _body(lambda rule, body: _completion(rule, body, choices=None)),
    "no_message": _body(lambda rule, body: _completion(rule, body, choices=[{"index": 0, "finish_reason": "stop"}])),
    "null_content": _body(lambda rule, body: _completion(Rule(reply=None), body)),
    "content_filter": _body(lambda rule, body: _completion(Rule(reply=None, finish_reason="content_filter"), body)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--rules", default="[]", help="JSON list of rules")
    options = parser.parse_args(arguments)
    rules = [Rule(**fields) for fields in json.loads(options.rules)]
    server = ModelServer(rules, options.host, options.port, keep_bodies=False)

    def announce(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    try:
        asyncio.run(server.serve(announce))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
