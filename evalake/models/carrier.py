"""Carries the requests of `litellm.acompletion` over our own transport, and keeps the answers as they came.

LiteLLM's clients follow redirects with some providers' keys, try twice what was dropped, and read without a limit.
Import this after `litellm_setup.load`.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import httpx
import litellm
from litellm.caching.llm_caching_handler import LLMClientCache
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

from evalake.models.transport import Answer, Asked

_OF_CONNECTION = frozenset({
    *("accept", "accept-encoding", "connection", "content-length", "host", "transfer-encoding", "user-agent"),
})  # fmt: skip
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # wrong for an unpacked body


class Exchange:
    """The one request of an attempt: sends it, and keeps its answer or its failure."""

    current: ContextVar["Exchange | None"] = ContextVar("exchange", default=None)

    def __init__(self, send: Callable[[Asked], Awaitable[Answer]], complete: Callable[[bytes], bytes]) -> None:
        """Set up an exchange. LiteLLM reads the answer's body as `complete` returns it."""
        self._send, self._complete = send, complete
        self.answer: Answer | None = None
        self.error: Exception | None = None

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Send a request. A second one after a failure is LiteLLM's own retry, and fails alike."""
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


class _Carrier(httpx.AsyncBaseTransport):
    """Sends what belongs to an exchange by it, and what a user's own code asks of LiteLLM as LiteLLM does."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if (exchange := Exchange.current.get()) is not None:
            return await exchange(request)
        handler = AsyncHTTPHandler()
        response = await handler.client.send(request, stream=True)
        response.extensions["handler"] = handler  # which would close the connection when it is collected
        return response


class _Clients(LLMClientCache):
    """LiteLLM's cache of HTTP clients, with one client for all exchanges."""

    def get_cache(self, key: str, **more: Any) -> Any:
        if key.startswith("async_httpx_client") and Exchange.current.get() is not None:
            return litellm.module_level_aclient
        return super().get_cache(key, **more)  # type: ignore[no-untyped-call]


def install() -> None:
    """Give LiteLLM our client wherever it takes one."""
    if litellm.aclient_session is None:
        litellm.aclient_session = httpx.AsyncClient(transport=_Carrier(), follow_redirects=False, trust_env=False)
        litellm.module_level_aclient = AsyncHTTPHandler(transport=_Carrier(), follow_redirects=False)
        litellm.in_memory_llm_clients_cache = _Clients()
