"""Makes calls by `litellm.acompletion`, for providers, parameters and messages that `direct.py` does not support.

LiteLLM builds the request and reads the answer. Our own transport carries both, since LiteLLM's clients follow
redirects with some providers' keys, try twice what was dropped, and read without a limit. So an answer is known as it
came: LiteLLM takes a null for the reason "stop", estimates tokens, and hides errors behind its own words.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalake.models import litellm_internals as internals
from evalake.models import replies
from evalake.models.cost import messages_of
from evalake.models.direct import LARGEST_REPLY, LARGEST_STREAM, WHOLE, Answer, Asked, Timing, Transport, direct_model
from evalake.models.failures import AttemptFailed, failure_of
from evalake.models.litellm_internals import load
from evalake.models.replies import ProviderAnswer, read_answer, read_whole
from evalake.models.request import Request
from evalake.models.routes import Route

if TYPE_CHECKING:
    import httpx

# What LiteLLM's reader of a provider cannot do without; it counts as not stated
_NEEDS: Mapping[str, Mapping[str, Any]] = {
    "anthropic": {"stop_reason": None, "usage": {"input_tokens": 0, "output_tokens": 0}},
    "gemini": {"usageMetadata": {"promptTokenCount": 0}},
}
_BINARY_STREAMS = frozenset({"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat"})  # are asked at once

_OF_CONNECTION = frozenset({
    *("accept", "accept-encoding", "connection", "content-length", "host", "transfer-encoding", "user-agent"),
})  # fmt: skip
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # wrong for an unpacked body

Send = Callable[[Asked], Awaitable[Answer]]


async def ask_litellm(
    request: Request, route: Route, transport: Transport, timing: Timing, on_data: Callable[[], None]
) -> ProviderAnswer:
    """Send a request and read its answer; raises AttemptFailed or an exception for `classify_error`.

    `on_data` is called after each part of the answer.
    """
    if route.provider in _BINARY_STREAMS:
        request = replace(request, stream=False)
    largest = LARGEST_STREAM if request.stream else LARGEST_REPLY

    async def send(asked: Asked) -> Answer:
        return await transport.post(asked, timing, on_data, largest)

    return await _answer_of(request, route, send)


def as_sent(request: Request, route: Route) -> Asked:
    """Build the HTTP request of a call that is not streamed. Raises LiteLLM's errors where there is none."""
    at_once = replace(request, stream=False)
    model = direct_model(at_once, route)
    return model.asked(request) if model else sent_by_litellm(at_once, route)


def sent_by_litellm(request: Request, route: Route) -> Asked:
    """Build the HTTP request that LiteLLM sends, without sending it."""
    asked: list[Asked] = []

    async def keep(sent: Asked) -> Answer:
        asked.append(sent)
        return Answer(400, {}, b"{}")

    try:
        _wait_for(_answer_of, request, route, keep)
    except Exception:  # LiteLLM refuses the answer above; without a request, its own error is told
        if not asked:
            raise
    return asked[0]


def read_stored(body: bytes, request: Request, route: Route) -> ProviderAnswer:
    """Read an answer of status 200 that was not streamed. Raises AttemptFailed where it is none."""
    if direct_model(replace(request, stream=False), route):
        return read_whole(body, route, read_answer)
    return _wait_for(_read_again, body, request, route)


def _wait_for(ask: Callable[..., Awaitable[ProviderAnswer]], *arguments: Any) -> ProviderAnswer:
    """Run a coroutine on a loop of its own: this thread may have one that runs, as in a notebook."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        return portal.call(ask, *arguments)


async def _read_again(body: bytes, request: Request, route: Route) -> ProviderAnswer:
    async def send(asked: Asked) -> Answer:
        return Answer(200, {"content-type": WHOLE}, body)

    return await _answer_of(replace(request, stream=False), route, send)


async def _answer_of(request: Request, route: Route, send: Send) -> ProviderAnswer:
    _install()
    internals.spare_bookkeeping()
    exchange = _Exchange(send, lambda body: _completed(body, _NEEDS.get(route.provider, {})))
    _Exchange.current.set(exchange)
    response: Any = None
    error: Exception | None = None
    try:
        response = await load().acompletion(
            model=route.model,
            messages=messages_of(request, route.provider),
            num_retries=0,
            max_retries=0,
            **route.arguments,
            **{**({"stream": True, **replies.STREAMED} if request.stream else {}), **request.parameters},
        )
        if hasattr(response, "fetch_stream"):
            await response.fetch_stream()  # else some are asked for with the first piece
    except Exception as raised:  # LiteLLM may raise any exception
        error = raised
        if exchange.error is not None:
            raise exchange.error from raised
        if exchange.answer is None:
            raise
    finally:
        _Exchange.current.set(None)
    answer = exchange.answer
    if answer is None:
        raise AttemptFailed("malformed_response", "LiteLLM answered without a request")
    if not answer.is_ok:
        raise failure_of(answer) from error
    if not request.stream:
        return read_whole(answer.body, route, lambda said: _read(said, response, failed=error is not None))
    if answer.is_whole:
        return await _read_again(answer.body, request, route)
    return await replies.read_stream(answer.body, internals.reader_of_pieces(response))


def _completed(body: bytes, needs: Mapping[str, Any]) -> bytes:
    """Add to an answer what LiteLLM's reader needs; an empty one stays unreadable."""
    try:
        said = json.loads(body) if needs else None
    except (ValueError, RecursionError):
        return body
    if not isinstance(said, dict) or not said:
        return body
    return json.dumps(said | {name: each for name, each in needs.items() if not said.get(name)}).encode()


def _read(said: Any, response: Any, failed: bool) -> ProviderAnswer:
    """Read an answer: in OpenAI's form as it is, any other as LiteLLM's object, held to what was stated."""
    if failed or replies.in_openai_form(said):
        return read_answer(said)
    return replies.as_stated(read_answer(response), said)


class _Exchange:
    """The one request of an attempt: sends it, and keeps its answer or its failure."""

    current: ContextVar["_Exchange | None"] = ContextVar("exchange", default=None)

    def __init__(self, send: Send, complete: Callable[[bytes], bytes]) -> None:
        """Set up an exchange. LiteLLM reads the answer's body as `complete` returns it."""
        self._send, self._complete = send, complete
        self.answer: Answer | None = None
        self.error: Exception | None = None

    async def __call__(self, request: "httpx.Request") -> "httpx.Response":
        """Send a request. A second one after a failure is LiteLLM's own retry, and fails alike."""
        import httpx

        if self.error is not None:
            raise self.error
        answer = self.answer
        if answer is None or answer.is_ok:
            headers = {name: value for name, value in request.headers.items() if name not in _OF_CONNECTION}
            try:
                answer = await self._send(Asked(str(request.url), headers, await request.aread()))
            except Exception as error:
                self.error = error
                raise
            self.answer = answer
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _UNPACKED]
        body = self._complete(answer.body) if answer.is_ok and answer.is_whole else answer.body
        return httpx.Response(answer.status, headers=kept, content=body, request=request)


def _install() -> None:
    """Give LiteLLM our client wherever it takes one, once."""
    litellm: Any = load()
    if litellm.aclient_session is not None:
        return
    import httpx
    from litellm.caching.llm_caching_handler import LLMClientCache
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class Carrier(httpx.AsyncBaseTransport):
        """Sends what belongs to an exchange by it, and what a user's own code asks of LiteLLM as LiteLLM does."""

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if (exchange := _Exchange.current.get()) is not None:
                return await exchange(request)
            handler = AsyncHTTPHandler()
            response = await handler.client.send(request, stream=True)
            response.extensions["handler"] = handler  # which would close the connection when it is collected
            return response

    class Clients(LLMClientCache):
        """LiteLLM's cache of HTTP clients, with one client for all exchanges."""

        def get_cache(self, key: str, **more: Any) -> Any:
            if key.startswith("async_httpx_client") and _Exchange.current.get() is not None:
                return litellm.module_level_aclient
            return super().get_cache(key, **more)  # type: ignore[no-untyped-call]

    litellm.aclient_session = httpx.AsyncClient(transport=Carrier(), follow_redirects=False, trust_env=False)
    litellm.module_level_aclient = AsyncHTTPHandler(transport=Carrier(), follow_redirects=False)
    litellm.in_memory_llm_clients_cache = Clients()
