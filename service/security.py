"""Headers on every answer: what a page may load, who may frame it, and that answers of the API are not stored."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
