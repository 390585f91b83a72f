"""Makes calls of endpoints in OpenAI's form over our own transport, for several times the calls per second.

The transport is one pool of HTTP connections, which measures the provider's part of the time. LiteLLM maps the
parameters and the messages; a test proves that the requests and replies equal those of `litellm.acompletion`, which
makes all other calls (`litellm_calls.py`).
"""

import json
import os
import ssl
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evalake.core.hashing import canonical_json
from evalake.models import litellm_internals as internals
from evalake.models.cost import messages_of
from evalake.models.endpoints import HARMLESS_PARAMETERS, KNOWN, key_of
from evalake.models.failures import AttemptFailed, failure_of
from evalake.models.litellm_internals import load
from evalake.models.replies import STREAMED, ProviderAnswer, read_answer, read_stream, read_whole
from evalake.models.request import Request
from evalake.models.routes import Route

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


# A test proves both ways equal for these
PARAMETERS = HARMLESS_PARAMETERS | {
    *("extra_body", "extra_headers", "logit_bias", "max_completion_tokens", "max_tokens", "n"),
    *("reasoning_effort", "thinking", "verbosity"),
}
_ROLES = frozenset({"system", "user", "assistant"})
_CHAT = "/chat/completions"


@dataclass(frozen=True)
class Provider:
    """What a provider in OpenAI's form has of its own. LiteLLM knows the addresses that are left out."""

    base: str | None = None
    base_variables: Sequence[str] = ()
    unless_set: Sequence[str] = ()
    """Environment variables that only LiteLLM itself handles."""


DIRECT = {name: Provider(**known["direct"]) for name, known in KNOWN.items() if "direct" in known}


class DirectModel:
    """One model with one set of parameters: the address and the headers of its requests, and their bodies."""

    def __init__(self, route: Route, parameters: Mapping[str, Any], stream: bool = False) -> None:
        own = DIRECT[route.provider]
        given = route.arguments.get("api_base") or _first_set(own.base_variables)
        key = route.arguments.get("api_key") or key_of(route.provider)
        self.provider = route.provider
        self.model, _, found_key, base = load().get_llm_provider(route.model, api_base=given, api_key=key)
        self.address = _address(self.provider, self.model, str(base or own.base))
        self.headers = _headers(self.provider, found_key or key) | dict(parameters.get("extra_headers") or {})
        self._class = internals.provider_class(self.provider, self.model)
        self._further = internals.call_parameters(self.provider, found_key or key, base or own.base)
        wished = {name: value for name, value in parameters.items() if name != "extra_headers"}
        wished |= STREAMED if stream else {}
        self._mapped = internals.provider_parameters(
            self.provider, self.model, [{"role": "user", "content": ""}], wished, stream or None
        )
        marked = self._mapped.pop("fake_stream", False)
        fakes = marked or self._class.should_fake_stream(self.model, stream, self.provider)
        self.possible = not self._mapped.pop("json_mode", False) and not (stream and fakes)
        """Whether LiteLLM sends the request as it stands, and not a tool for a format or one answer for a stream."""
        self.streams = stream

    def asked(self, request: Request) -> Asked:
        """Build a request of the model with these parameters."""
        messages = messages_of(request, self.provider)
        mapped = deepcopy(self._mapped)  # LiteLLM changes it
        further = mapped.pop("extra_body", None) or {}
        made: dict[str, Any] = self._class.transform_request(
            model=self.model,
            messages=messages,
            optional_params=mapped,
            litellm_params=self._further,
            headers=self.headers,
        )
        body = {**made, **further, **({"stream": True} if self.streams else {})}
        return Asked(self.address, self.headers, encoded(body))


class DirectCalls:
    """The direct calls of one client, on one event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._models: dict[tuple[str, bool, bytes], DirectModel | None] = {}

    def model(self, request: Request, route: Route) -> DirectModel | None:
        """Return the request's direct model, as `direct_model` does; a known one for known parameters."""
        if not _plain(request.messages):
            return None
        key = (route.model, request.stream, canonical_json(dict(request.parameters)))
        if key not in self._models:
            self._models[key] = direct_model(request, route)
        return self._models[key]

    async def ask(
        self, model: DirectModel, request: Request, route: Route, timing: Timing, on_data: Callable[[], None]
    ) -> ProviderAnswer:
        """Send a request and read its answer; raises AttemptFailed or an exception for `classify_error`.

        `on_data` is called after each part of the answer.
        """
        largest = LARGEST_STREAM if model.streams else LARGEST_REPLY
        answer = await self._transport.post(model.asked(request), timing, on_data, largest)
        if not answer.is_ok:
            raise failure_of(answer)
        if model.streams and not answer.is_whole:
            return await read_stream(answer.body)
        return read_whole(answer.body, route, read_answer)


def direct_model(request: Request, route: Route) -> DirectModel | None:
    """Build the request's direct model; None where `litellm.acompletion` has to make the call.

    Raises LiteLLM's errors for parameters that the provider does not support.
    """
    if not _plain(request.messages) or not request.parameters.keys() <= PARAMETERS or not _is_usual(route):
        return None
    model = DirectModel(route, request.parameters, request.stream)
    takes_chat = internals.takes_chat(model.provider, model.model, request.parameters)
    return model if model.possible and takes_chat else None


def warm_up() -> None:
    """Build and read one call without a network, for LiteLLM's imports at the first call."""
    with warnings.catch_warnings(action="ignore"):
        route = Route("hosted_vllm/none", "hosted_vllm", {"api_base": "http://none.invalid"}, None)
        request = Request(route.model, ({"role": "user", "content": ""},), {})
        if model := direct_model(request, route):
            model.asked(request)


def encoded(body: Any) -> bytes:
    """Encode a body as JSON."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def _plain(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all messages are texts of system, user and assistant."""
    return all(message["role"] in _ROLES and len(message) == 2 and "content" in message for message in messages)


def _is_usual(route: Route) -> bool:
    """Tell whether the environment asks nothing of this provider's calls that only LiteLLM does."""
    own = DIRECT.get(route.provider)
    if own is None or _first_set(own.unless_set):
        return False
    if route.provider != "azure":
        return True
    base = route.arguments.get("api_base") or _first_set(own.base_variables) or "/openai"
    version = os.environ.get("AZURE_API_VERSION") or "2"
    return not ("/openai" in base or "gateway.ai.cloudflare.com" in base) and version[0].isdigit()


def _address(provider: str, model: str, base: str) -> str:
    if provider == "azure":
        version = os.environ.get("AZURE_API_VERSION") or load().AZURE_DEFAULT_API_VERSION
        return f"{base.rstrip('/')}/openai/deployments/{model}{_CHAT}?api-version={version}"
    return base if base.endswith(_CHAT) else f"{base.rstrip('/')}{_CHAT}"


def _headers(provider: str, key: str | None) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if provider == "openrouter":
        headers["HTTP-Referer"] = os.environ.get("OR_SITE_URL") or "https://litellm.ai"
        headers["X-Title"] = os.environ.get("OR_APP_NAME") or "liteLLM"
    return headers | ({"api-key": str(key)} if provider == "azure" else {"Authorization": f"Bearer {key}"})


def _first_set(variables: Sequence[str]) -> str | None:
    return next(filter(None, map(os.environ.get, variables)), None)
