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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from evalake.core.hashing import content_hash
from tests.servers.batch_jobs import BatchJobs
from tests.servers.model_answers import JSON, anthropic_message, completion, completion_chunks, stream
from tests.servers.model_faults import FAULTS
from tests.servers.model_rule import Messages, Rule

LOOK_SECONDS = 0.05  # at what ends the wait before an answer


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
        self.batches = BatchJobs(lambda body: completion(self._rule(body["model"], body["messages"]), body))
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
        if request.path.endswith(("/chat/completions", "/v1/messages")) and request.method == "POST":
            return await self._chat(request)
        if (answer := await self.batches.handle(request)) is not None:
            return answer
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
            rule = await self._waited(self._rule(model, messages), model, messages)
            fault = self._next_fault(rule, seen.key)
            response: web.StreamResponse
            if fault is None and body.get("stream"):
                response = await stream(request, completion_chunks(rule, body), rule.pause)
            elif fault is None:
                answer = completion(rule, body)
                if request.path.endswith("/messages"):
                    answer = json.dumps(anthropic_message(json.loads(answer))).encode()
                response = web.Response(body=answer, content_type=JSON)
            else:
                seen.fault = fault["kind"]
                response = await FAULTS[fault["kind"]](request, rule, body, fault)
            seen.status = response.status
            return response
        finally:
            seen.ended = time.monotonic()
            self.in_flight -= 1

    async def _waited(self, rule: Rule, model: str, messages: Messages) -> Rule:
        """Wait as long as a rule says; the later one, where there is one by then."""
        due = time.monotonic() + rule.latency
        while (rest := due - time.monotonic()) > 0 and not rule.until():
            await asyncio.sleep(min(rest, LOOK_SECONDS))
            if (now := self._rule(model, messages)) is not rule:
                return now
        return rule

    def _rule(self, model: str, messages: Messages) -> Rule:
        return next((rule for rule in reversed(self.rules) if rule.matches(model, messages)), Rule())

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
