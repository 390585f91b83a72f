"""Sends requests over one pool of HTTP connections, and measures the provider's part of the time."""

import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evalake.models.failures import AttemptFailed

if TYPE_CHECKING:
    import aiohttp

LARGEST_REPLY = 32 * 2**20  # bytes, unpacked
LARGEST_STREAM = 4 * LARGEST_REPLY  # a stream has some hundred bytes for each token
WHOLE = "application/json"  # the content type of an answer that is not streamed
_READ_AT_ONCE = 2**18


@dataclass(slots=True)
class Timing:
    """The times of one request, in seconds of the process's clock; 0 before the event."""

    started: float = 0.0
    connected: float = 0.0
    sent: float = 0.0
    first_byte: float = 0.0
    ended: float = 0.0

    @property
    def connect_ms(self) -> float | None:
        """Milliseconds until the connection was open."""
        return (self.connected - self.started) * 1000 if self.connected else None

    @property
    def first_byte_ms(self) -> float | None:
        """Milliseconds from the last byte sent to the first byte of the answer."""
        return max(self.first_byte - self.sent, 0.0) * 1000 if self.sent and self.first_byte else None

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from the last byte sent to the last byte of the answer."""
        return max(self.ended - self.sent, 0.0) * 1000 if self.sent and self.ended else None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a provider."""

    address: str
    headers: Mapping[str, str]  # with the key
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer, unpacked."""

    status: int
    headers: Mapping[str, str]  # found in any case
    body: bytes

    @property
    def is_ok(self) -> bool:
        """Whether the status is a success; a redirect is none."""
        return 200 <= self.status < 300

    @property
    def is_whole(self) -> bool:
        """Whether the answer is not streamed."""
        return self.headers.get("content-type", "").partition(";")[0].strip() == WHOLE


class Transport:
    """One pool of connections to all providers, on one event loop."""

    def __init__(self) -> None:
        import aiohttp

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(_on_connected)
        trace.on_connection_reuseconn.append(_on_connected)
        trace.on_request_headers_sent.append(_on_sent)
        trace.on_request_chunk_sent.append(_on_sent)
        # No limit: those of each provider count
        connector = aiohttp.TCPConnector(limit=0, ssl=_tls(), ttl_dns_cache=300)
        self._session = aiohttp.ClientSession(
            connector=connector,
            trace_configs=[trace],
            timeout=aiohttp.ClientTimeout(total=None),  # the caller has one
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._proxies: dict[str, str | None] = {}

    async def post(
        self,
        asked: Asked,
        timing: Timing,
        on_data: Callable[[], None] = lambda: None,
        largest: int = LARGEST_REPLY,
    ) -> Answer:
        """Send a request, read the whole answer, and fill in `timing`, even for a failure.

        A redirect is an answer: following it would send the key to another address.

        Args:
            asked: The request.
            timing: The times of this attempt.
            on_data: Called after each part of the answer.
            largest: The most bytes of an answer.

        Raises:
            AttemptFailed: The answer is larger. Network failures raise aiohttp's errors.
        """
        from yarl import URL

        url = asked.address
        timing.started = time.perf_counter()
        async with self._session.post(
            URL(url, encoded=url.isascii()),  # some providers sign the address as it is written
            data=asked.body,
            headers=asked.headers,
            allow_redirects=False,
            proxy=self._proxy(url),
            trace_request_ctx=timing,
        ) as response:
            on_data()
            answered = await _read(response, timing, on_data, largest)
            timing.ended = time.perf_counter()
            return Answer(response.status, response.headers, answered)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _proxy(self, url: str) -> str | None:
        """Look up the proxy that the environment names for this address (HTTPS_PROXY, NO_PROXY)."""
        place = urlsplit(url)
        origin = f"{place.scheme}://{place.netloc}"
        if origin not in self._proxies:
            host = place.hostname or ""
            self._proxies[origin] = None if proxy_bypass(host) else getproxies().get(place.scheme)
        return self._proxies[origin]


async def _read(response: "aiohttp.ClientResponse", timing: Timing, on_data: Callable[[], None], largest: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(_READ_AT_ONCE):
        timing.first_byte = timing.first_byte or time.perf_counter()  # headers may come earlier
        on_data()
        size += len(part)
        if size > largest:
            parts.clear()  # the error's traceback would keep them
            raise AttemptFailed("malformed_response", f"the reply is larger than {largest:,} bytes")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _tls() -> ssl.SSLContext:
    """Load the certificates of SSL_CERT_FILE or SSL_CERT_DIR, else those of certifi."""
    import certifi

    own = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=None if own else certifi.where())


async def _on_connected(_: Any, context: Any, parameters: Any) -> None:
    context.trace_request_ctx.connected = time.perf_counter()


async def _on_sent(_: Any, context: Any, parameters: Any) -> None:
    context.trace_request_ctx.sent = time.perf_counter()
