"""Calls models: many at once, within their providers' limits, with retries. A failed call is a Failure.

All calls of a client run on one background event loop, so that batches of several threads share limits and connections:

    with Client(read_configuration()) as client:
        outcomes = client.run([client.call(request) for request in requests])   # blocks until every call has ended

A conversation is a coroutine that awaits `client.call`, too:

    async def converse(item):
        replies = []
        while request := next_request(item, replies):
            replies.append(await client.call(request, item.replicate))

    client.run(converse(item) for item in batch)
"""

import asyncio
import json
import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evalake.core.configuration import Configuration
from evalake.core.errors import ProviderError
from evalake.core.redaction import redact
from evalake.models.attempts import Admit, Breakers, Caller, CallsEndedError, Outcome, always
from evalake.models.endpoints import KEY_VARIABLES, KEYLESS, known_provider, likely_provider, require_trust
from evalake.models.litellm_calls import as_sent
from evalake.models.request import ANSWERED_HERE, BASELINE, Baseline, Request, parameters_of
from evalake.models.routes import NO_BASELINES, ReadSecret, Route, Routes, no_secrets

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

CLOSED = "the client is closed"

T = TypeVar("T")


@dataclass(slots=True)
class _RunningCall:
    """A running call, and the number of callers that wait for it."""

    task: asyncio.Task[Outcome]
    waiting: int = 0


class Client(AbstractContextManager["Client"]):
    """The one way to call models. Share one per process; safe to use from several threads at once."""

    def __init__(
        self,
        configuration: Configuration,
        backoff_seconds: float = 0.5,
        read_secret: ReadSecret = no_secrets,
        baselines: Mapping[str, Baseline] = NO_BASELINES,
        breakers: Breakers | None = None,
    ):
        """Set up a client. The pause before a retry begins with `backoff_seconds` and doubles, with jitter.

        `read_secret` is called on another thread when the first call needs its key. `breakers` are shared with other
        clients; None: the client's own.
        """
        self._configuration = configuration
        self._routes = Routes(configuration, read_secret, baselines)
        self._backoff_seconds = backoff_seconds
        self._breakers = {} if breakers is None else breakers
        self._lock = threading.Lock()  # so that nothing starts on the loop after it has ended
        self._portal: BlockingPortal | None = None
        self._portal_exit = ExitStack()
        self._started: dict[Future[Any], threading.Event] = {}  # coroutines on the loop, and whether they have ended
        self._closed = False
        self._ended: str | None = None  # the reason for which no further attempt begins
        # Used by the loop's thread alone
        self._loop: asyncio.AbstractEventLoop | None = None
        self._caller: Caller | None = None
        self._running: dict[tuple[str, int], _RunningCall] = {}

    def run(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run coroutines that await `call` all at once on the client's loop; return their results in order.

        The first exception, or a KeyboardInterrupt of this thread, cancels the other coroutines and is raised after
        they have ended.
        """
        all_ = list(coroutines)
        if not all_:
            if self._closed:
                raise ProviderError(CLOSED)
            return []
        try:
            future, ended = self._start(lambda: _gather(all_))
        except BaseException:
            for coroutine in all_:
                coroutine.close()
            raise
        try:
            return future.result()
        except CancelledError as error:
            ended.wait()
            raise ProviderError("the client was closed during its calls") from error
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait()
            raise

    async def call(self, request: Request, replicate: int = 0, admit: Admit = always) -> Outcome:
        """Make one call, from any event loop. Concurrent calls of one prompt hash and replicate are one call.

        `admit` is awaited before each attempt, once the provider has a free slot. Raises ProviderError for a model that
        cannot be called, CallsEndedError after `end_calls`; any other failure is a Failure.
        """
        if asyncio.get_running_loop() is not self._loop:
            future, _ = self._start(lambda: self.call(request, replicate, admit))
            return await asyncio.wrap_future(future)
        key = (request.prompt_hash, replicate)
        running = self._running.get(key)
        if running is None:
            assert self._caller is not None
            running = self._running[key] = _RunningCall(asyncio.create_task(self._caller.complete(request, admit)))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if running.waiting == 0:
                running.task.cancel()
                if self._running.get(key) is running:
                    del self._running[key]

    def end_calls(self, reason: str) -> None:
        """Begin no further attempt: `call` raises CallsEndedError. Running attempts go on."""
        self._ended = reason

    def require_going_on(self) -> None:
        """Raise CallsEndedError after `end_calls`."""
        if self._ended is not None:
            raise CallsEndedError(self._ended)

    @property
    def in_flight(self) -> int:
        """The number of calls with a running attempt."""
        return len(self._running) - self._caller.waiting if self._caller is not None else 0

    def close(self) -> None:
        """Cancel the running calls, close the connections and end the thread."""
        with self._lock:
            self._closed = True
            started = dict(self._started)
        for future, ended in started.items():
            future.cancel()
            ended.wait()
        self._portal_exit.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[Future[T], threading.Event]:
        """Start a coroutine on the loop; the event is set when it has ended, cancelled or not."""
        ended = threading.Event()

        async def run() -> T:
            try:
                return await make()
            finally:
                ended.set()

        with self._lock:
            if self._closed:
                raise ProviderError(CLOSED)
            future = self._open_portal().start_task_soon(run)
            self._started[future] = ended
        future.add_done_callback(lambda done: self._started.pop(done, None))
        return future, ended

    def _open_portal(self) -> "BlockingPortal":
        if self._portal is None:
            from anyio.from_thread import start_blocking_portal

            self._portal = self._portal_exit.enter_context(start_blocking_portal(name="evalake-calls"))
            self._portal.call(self._set_up_loop)
            self._portal_exit.callback(self._portal.call, self._tear_down_loop)
        return self._portal

    async def _set_up_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._caller = Caller(
            self._configuration, self._routes, self._backoff_seconds, self._breakers, self.require_going_on
        )

    async def _tear_down_loop(self) -> None:
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()


async def _gather(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; all have ended when this returns or raises."""
    from anyio import CancelScope

    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)


# A stored request as commands that ask it again. A key stands in them by its variable's name.


_PYTHON = """import json
import os

import litellm

request = json.loads({request})
reply = litellm.completion(model={model}, **request{arguments})
print(reply.choices[0].message.content)
"""


class Commands(NamedTuple):
    """Commands that ask a request again; `curl` is None for providers that only LiteLLM can ask."""

    curl: str | None
    python: str


def ask_again(request: Mapping[str, Any], configuration: Configuration) -> Commands:
    """Write a decoded request of the ledger as commands for a POSIX shell and for Python.

    Raises ProviderError where nobody can be asked: a baseline, an unknown provider, or an untrusted configuration that
    would send a key elsewhere.
    """
    model = configuration.real_model(str(request.get("model", "")))
    if model.startswith(ANSWERED_HERE):
        by = "`evalake run --models`" if model.startswith(BASELINE) else "`evalake.evaluate`"
        raise ProviderError(f"{model} answers without a server: run it by {by}")
    provider = known_provider(model) or likely_provider(model)
    if provider is None or not isinstance(request.get("messages"), list):
        raise ProviderError("this request cannot be asked again: its provider or its messages are unknown")
    require_trust(model, provider, configuration)
    options = configuration.model(model)
    variable = options.api_key_env or _usual_variable(provider)
    parameters = {"messages": request["messages"], **parameters_of(request)}
    sent = json.dumps([parameters, options.api_base])
    if redact(sent) != sent:
        raise ProviderError("this request holds a key, so it is not written as a command")
    python = _python(model, parameters, variable, options.api_base)
    return Commands(_curl(model, provider, parameters, variable, options.api_base), python)


def _usual_variable(provider: str) -> str | None:
    """Name the variable of a provider's key: the first that is set, else the usual one; None where it needs none."""
    names = KEY_VARIABLES.get(provider, ())
    return None if provider in KEYLESS else next(filter(os.environ.get, names), next(iter(names), None))


def _python(model: str, parameters: Mapping[str, Any], variable: str | None, base: str | None) -> str:
    given = [f"api_base={base!r}"] if base else []
    given += [f"api_key=os.environ[{variable!r}]"] if variable else []
    text = json.dumps(parameters, ensure_ascii=True)
    return _PYTHON.format(request=repr(text), model=repr(model), arguments="".join(f", {each}" for each in given))


def _curl(
    model: str, provider: str, parameters: Mapping[str, Any], variable: str | None, base: str | None
) -> str | None:
    """Write the request that evalake itself would send, with a stand-in for the key that becomes its variable."""
    if provider not in KEY_VARIABLES.keys() | KEYLESS or (variable is None and base is None):
        return None
    stand_in = f"key{secrets.token_hex(16)}"
    route = Route(model, provider, {"api_key": stand_in, **({"api_base": base} if base else {})}, None)
    given = {name: value for name, value in parameters.items() if name != "messages"}
    try:
        sent = as_sent(Request(model, tuple(parameters["messages"]), given), route)
    except Exception:  # noqa: BLE001 - LiteLLM may raise any exception for what this provider cannot be asked
        return None
    told = (f"-H {_quoted(f'{name}: {value}')}" for name, value in sent.headers.items())
    text = " \\\n  ".join([f"curl {_quoted(sent.address)}", *told, f"--data-raw {_quoted(sent.body.decode())}"])
    key = f"'\"${variable}\"'" if variable else "no-key-needed"
    return f"{text.replace(stand_in, key)}\n"


def _quoted(text: str) -> str:
    """Quote a text for a POSIX shell, always, so that a variable can be put between its quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
