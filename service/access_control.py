"""Access control: decides from a request's headers alone who asks and whether it may, before its body is read."""

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.redaction import redact
from service.auth import who
from service.errors import ApiError, TooLargeError
from service.hosts import SAFE_METHODS, Hosts
from service.limits import let_in
from service.settings import Settings

LARGEST_BODY = 2 * 1024 * 1024  # bytes; a batch of a thousand ids has half of it
LINGER_SECONDS = 2  # for what is still on its way from who was refused
API = "/api/"


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
            scope.setdefault("state", {})["user"] = who(connection, self._settings)
            let_in(scope)
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
    """Wrap `receive` to refuse a body of more than LARGEST_BODY bytes, whatever length was announced."""
    size = 0

    async def receive_some() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise HTTPException(TooLargeError.status, _TOO_LARGE)
        return message

    return receive_some
