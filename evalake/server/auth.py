"""Authentication: a user named by a trusted proxy, a bearer of the token, or anybody if the service is open."""

import base64
import hmac
import logging
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio
from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evalake.core.errors import EvalakeError
from evalake.core.redaction import redact
from evalake.server.settings import (
    NOBODY_IN_PARTICULAR,
    ApiError,
    NotAllowedError,
    Settings,
    TooLargeError,
    WrongHostError,
)

SUBPROTOCOL = "evalake"
LONGEST_NAME = 320

_BEARER = "bearer."


def who(connection: HTTPConnection, settings: Settings) -> str:
    """Name the user of a request. Raises NotAllowedError where neither a trusted proxy nor the token tells who asks."""
    if settings.is_open:
        return NOBODY_IN_PARTICULAR
    if _is_trusted(connection, settings) and (name := _named(connection, settings)):
        return name
    if settings.token is not None and any(_same(token, settings.token) for token in _tokens(connection)):
        return NOBODY_IN_PARTICULAR
    raise NotAllowedError("not allowed: come by way of a trusted proxy, or with the token (Authorization: Bearer …)")


def require_token(connection: HTTPConnection, settings: Settings) -> None:
    """Raise NotAllowedError where a request that writes does not show the token, for any named user."""
    if settings.token is None or not any(_same(token, settings.token) for token in _tokens(connection)):
        raise NotAllowedError("not allowed: writing needs the token (Authorization: Bearer …)")


def subprotocol(connection: HTTPConnection) -> str | None:
    """Choose the subprotocol for a WebSocket; None if the client did not offer ours."""
    return SUBPROTOCOL if SUBPROTOCOL in _offered(connection) else None


def _is_trusted(connection: HTTPConnection, settings: Settings) -> bool:
    if connection.client is None:
        return False
    try:
        peer = ip_address(connection.client.host)
    except ValueError:
        return False
    peer = getattr(peer, "ipv4_mapped", None) or peer
    return any(peer in network for network in settings.configuration.service.trusted_proxies)


def _named(connection: HTTPConnection, settings: Settings) -> str:
    """Read the user that a trusted proxy names; empty where it names none, or there are two names, one a client's."""
    headers = connection.headers.getlist(settings.configuration.service.user_header)
    name = _text(headers[0]) if len(headers) == 1 else ""
    return "".join(filter(str.isprintable, name)).strip()[:LONGEST_NAME]


def _text(header: str) -> str:
    """Decode a header's text as UTF-8; where it is not UTF-8, it stays as it was decoded (Latin-1)."""
    with suppress(UnicodeError):
        return header.encode("latin-1").decode("utf-8")
    return header


def _tokens(connection: HTTPConnection) -> Iterable[str]:
    kind, _, token = _text(connection.headers.get("authorization", "")).partition(" ")
    if kind.lower() == "bearer":
        yield token.strip()
    for offered in _offered(connection):
        if offered.startswith(_BEARER):
            encoded = offered.removeprefix(_BEARER)
            try:
                yield base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("utf-8")
            except ValueError:
                continue


def _offered(connection: HTTPConnection) -> list[str]:
    return [part.strip() for part in connection.headers.get("sec-websocket-protocol", "").split(",")]


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8"))


# The names by which the service may be addressed. A name that another site points here is none of them.


LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Hosts:
    """The loopback names, the address that the service listens on, and the names of the configuration."""

    def __init__(self, bound: str, allowed: tuple[str, ...]) -> None:
        self._configured = {name.lower() for name in allowed}
        self._names = self._configured | {*LOOPBACK_NAMES, bound.lower()}
        self._any_address = bound in EVERY_ADDRESS

    def require_ours(self, connection: HTTPConnection) -> None:
        """Raise WrongHostError where a request is addressed to a name that is not the service's.

        A page of another site can have its own name point to this machine (DNS rebinding), and could then read answers.
        """
        asked = connection.headers.getlist("host")
        host = _hostname(asked[0]) if len(asked) == 1 else None
        if host is None or not (host in self._names or (self._any_address and _is_address(host))):
            raise WrongHostError(
                f"the service does not answer to the host {', '.join(asked)[:200]!r}: name it in [service] "
                "allowed_hosts of evalake.toml, if it is the service's"
            )

    def require_own_page(self, connection: HTTPConnection) -> None:
        """Raise NotAllowedError where a page of another site would start something, or open a WebSocket."""
        origins = connection.headers.getlist("origin")
        if not origins or (connection.scope["type"] == "http" and connection.scope["method"] in SAFE_METHODS):
            return
        if not self._is_own(connection, origins):
            raise NotAllowedError("not allowed: a page of another site asks")

    def require_same_origin(self, connection: HTTPConnection) -> None:
        """Raise NotAllowedError where a request that writes does not show that a page of ours sends it."""
        origins, sites = (connection.headers.getlist(name) for name in ("origin", "sec-fetch-site"))
        is_shown = self._is_own(connection, origins) if origins else sites == ["same-origin"]
        if not is_shown or any(site != "same-origin" for site in sites):
            raise NotAllowedError("not allowed: writing needs an Origin or Sec-Fetch-Site of the viewer's own pages")

    def _is_own(self, connection: HTTPConnection, origins: list[str]) -> bool:
        place = origins[0].partition("://")[2]
        is_ours = place == connection.headers.get("host") or _hostname(place) in self._configured
        return len(origins) == 1 and bool(place) and is_ours


def _hostname(place: str) -> str | None:
    """Read the host out of `host:port`; None without a host."""
    if "@" in place:  # a user is no part of a host
        return None
    try:
        return urlsplit(f"//{place}").hostname
    except ValueError:  # like half a pair of brackets
        return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# Access control: decides from a request's headers alone who asks and whether it may, before its body is read.


LARGEST_BODY = 2 * 1024 * 1024  # bytes; a batch of a thousand ids has half of it
LINGER_SECONDS = 2  # for what is still on its way from who was refused
API = "/api/"
CONNECTION = "connection"  # in the state of a request: its connection, which `listening` counts


class AccessControl:
    """Lets a request through to the application with the name of who asks in `state.user`, or answers it."""

    def __init__(self, app: ASGIApp, settings: Settings, hosts: Hosts) -> None:
        self._app, self._settings, self._hosts = app, settings, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self._examine(scope)
        except ApiError as error:
            answer = refusal(error)
            if scope["type"] == "http" and _has_body(HTTPConnection(scope)):
                await _answer_and_close(answer, scope, receive, send)
            else:
                await answer(scope, receive, send)
            return
        await self._app(scope, _bounded(receive) if scope["type"] == "http" else receive, send)

    def _examine(self, scope: Scope) -> None:
        connection = HTTPConnection(scope)
        self._hosts.require_ours(connection)
        self._hosts.require_own_page(connection)
        if not _is_page(scope):
            state = scope.setdefault("state", {})
            state["user"] = who(connection, self._settings)
            if CONNECTION in state:
                state[CONNECTION].is_let_in = True
        if _announced(connection) > LARGEST_BODY:
            raise TooLargeError(_TOO_LARGE)


_TOO_LARGE = f"the request's body is larger than {LARGEST_BODY:,} bytes: ask for less at once"


def refusal(error: ApiError) -> JSONResponse:
    """Build the answer to an error: its status, and its message as JSON."""
    headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "5"}, 503: {"retry-after": "30"}}.get(
        error.status
    )
    return JSONResponse({"detail": redact(str(error))}, error.status, headers)


async def _answer_and_close(answer: JSONResponse, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer at once, let a part of the body come and drop it, and close the connection.

    A connection that is closed while bytes on it wait to be read is reset, and the client may never see the answer.
    """
    answer.headers["connection"] = "close"  # the rest of the body is not read, so no request can follow

    async def send_open(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await answer(scope, receive, send_open)
    with anyio.move_on_after(LINGER_SECONDS):
        dropped, message = 0, await receive()
        while message.get("more_body") and dropped < LARGEST_BODY:
            dropped += len(message["body"])
            message = await receive()
    await send({"type": "http.response.body"})


def _is_page(scope: Scope) -> bool:
    """Tell whether a request only reads the dashboard's files, which hold nobody's data."""
    return scope["type"] == "http" and scope["method"] in SAFE_METHODS and not scope["path"].startswith(API)


def _announced(connection: HTTPConnection) -> int:
    """Read the length of the body in bytes from the header `content-length`; 0 where it gives none."""
    length = connection.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _has_body(connection: HTTPConnection) -> bool:
    return connection.headers.get("content-length", "0") != "0" or "transfer-encoding" in connection.headers


def _bounded(receive: Receive) -> Receive:
    """Wrap `receive` to refuse a body of more than LARGEST_BODY bytes, for any announced length."""
    size = 0

    async def receive_some() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise HTTPException(TooLargeError.status, _TOO_LARGE)
        return message

    return receive_some


# Headers on every answer: what a page may load, who may frame it, and that answers of the API are not stored.


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Puts the headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and put the headers on its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(HEADERS)
        headers["cache-control"] = "no-store" if scope["path"].startswith("/api/") else "no-cache"

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name, value) for name, value in message["headers"] if name.decode().lower() not in headers]
                message["headers"] = own + [(name.encode(), value.encode()) for name, value in headers.items()]
            await send(message)

        await self._app(scope, receive, dressed)


# What every service answers where something is wrong: a status, and one sentence as JSON.


logger = logging.getLogger("evalake.service")


def add_error_answers(app: FastAPI) -> None:
    """Have every error answered as JSON with a sentence."""
    app.add_exception_handler(EvalakeError, _sentence)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)


async def _sentence(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, ApiError):
        return refusal(error)
    return JSONResponse({"detail": redact(str(error))}, 500)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Without the input, which may be huge, or of a kind that JSON has no word for
    problems = [{name: each[name] for name in ("type", "loc", "msg")} for each in error.errors()]
    return JSONResponse({"detail": problems}, 422)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer an error as FastAPI does, but with 422 instead of 400 where the body cannot be read: it is malformed."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return JSONResponse({"detail": [{"type": "json_invalid", "loc": ["body"], "msg": str(error.detail)}]}, 422)
    return await http_exception_handler(request, error)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    logger.error("a request failed", exc_info=error)
    return JSONResponse({"detail": f"unexpected {type(error).__name__}: the service's log says more"}, 500)
