"""The pages: files that are read once, and the one page that shows every address of them.

Everybody who reaches the service can ask for them. So they take none of the threads that answer users, and large ones
are sent in parts, which end with the connection.
"""

import hashlib
import json
import mimetypes
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).resolve().parent / "front"
REFERENCE = "/reference"  # the API's own page, on which it can be tried
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
PART = 65_536  # bytes


def addresses() -> dict[str, dict[str, str]]:
    """Read the addresses of the pages of `scoring` and of the `viewer`, by their names."""
    text = (FOLDER / "js" / "addresses.js").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = json.loads(text[text.index("{") : text.index("};") + 1])
    return found


def add_pages(app: FastAPI, *, only_viewer: bool = False) -> None:
    """Serve the pages at their addresses, where their folder exists; `only_viewer` leaves out those of scoring."""
    page = FOLDER / "index.html"
    if not page.is_file():
        return
    text = page.read_text(encoding="utf-8")
    if only_viewer:
        text = text.replace('<html lang="en">', '<html lang="en" data-only="viewer">')

    async def index() -> HTMLResponse:
        return HTMLResponse(text)

    async def sessions(request: Request) -> RedirectResponse:
        return RedirectResponse(f"./?{request.url.query}" if request.url.query else "./")

    parts = ("viewer",) if only_viewer else ("scoring", "viewer")
    if not only_viewer:
        app.add_api_route("/sessions", sessions, include_in_schema=False)
    for address in (each for part in parts for each in addresses()[part].values()):
        app.add_api_route(address, index, include_in_schema=False)
    files = (file for file in FOLDER.rglob("*") if file.is_file())
    pages = {f"/{file.relative_to(FOLDER).as_posix()}": _File(file) for file in files}
    app.mount("/", _Files({**pages, **dict(_reference(FOLDER))}, text))


class _File:
    """A file to be served."""

    def __init__(self, file: Path) -> None:
        self.content = file.read_bytes()
        self.media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.version = f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'  # as a header `etag`

    def response(self, headers: Headers) -> Response:
        own = {"etag": self.version}
        if headers.get("if-none-match") == self.version:
            return Response(status_code=304, headers=own)
        if len(self.content) <= PART:
            return Response(self.content, media_type=self.media_type, headers=own)
        own["content-length"] = str(len(self.content))
        return StreamingResponse(self._parts(), media_type=self.media_type, headers=own)

    async def _parts(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), PART):
            yield self.content[start : start + PART]


class _Files:
    """Static files; at an address without a file a browser gets the page, which says so, with status 404."""

    def __init__(self, files: dict[str, _File], page: str) -> None:
        self._files, self._page = files, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        if scope["type"] != "http":
            raise HTTPException(404)
        await self._response(scope)(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405)
        headers, path = Headers(scope=scope), scope["path"]
        if file := self._files.get(path):
            return file.response(headers)
        if "text/html" in headers.get("accept", "") and not path.startswith("/api/"):
            return HTMLResponse(self._page, 404)
        raise HTTPException(404)


def _reference(folder: Path) -> Iterator[tuple[str, _File]]:
    """Yield Swagger UI from the copy that LiteLLM's package brings, so that no page asks another host for it."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        return
    files = {name: Path(package.origin).parent / "proxy" / "swagger" / name for name in SWAGGER}
    if all(file.is_file() for file in files.values()):
        yield REFERENCE, _File(folder / "reference.html")
        yield from ((f"{REFERENCE}/{name}", _File(file)) for name, file in files.items())
