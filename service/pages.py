"""The pages: static files, and the one page that shows every address of them."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Scope
from typing_extensions import override

FOLDER = Path(__file__).resolve().parent / "front"
_RUNS = ("/runs", "/runs/{run_id}", "/runs/{run_id}/items", "/runs/{run_id}/items/{item_id}")
VIEWER = (*_RUNS, "/metrics", "/compare", "/checks", "/sql")
REFERENCE = "/reference"  # the API's own page, on which it can be tried
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")


def add_pages(app: FastAPI, addresses: Sequence[str], *, only_viewer: bool = False, folder: Path = FOLDER) -> None:
    """Serve the pages at their addresses, where their folder exists; `only_viewer` leaves out those of scoring."""
    page = folder / "index.html"
    if not page.is_file():
        return
    text = page.read_text(encoding="utf-8")
    if only_viewer:
        text = text.replace('<html lang="en">', '<html lang="en" data-only="viewer">')

    def index() -> HTMLResponse:
        return HTMLResponse(text)

    for address in addresses:
        app.add_api_route(address, index, include_in_schema=False)
    _add_reference(app, folder)
    app.mount("/", _Files(folder, text))


class _Files(StaticFiles):
    """Static files; at an address without a file a browser gets the page, which says so, with status 404."""

    def __init__(self, folder: Path, page: str) -> None:
        super().__init__(directory=folder, html=True)
        self._page = page

    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            wants_page = "text/html" in Headers(scope=scope).get("accept", "") and not path.startswith("api/")
            if error.status_code == 404 and wants_page:
                return HTMLResponse(self._page, 404)
            raise


def _add_reference(app: FastAPI, folder: Path) -> None:
    """Serve Swagger UI from the copy that LiteLLM's package brings, so that no page asks another host for it."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        return
    files = {name: Path(package.origin).parent / "proxy" / "swagger" / name for name in SWAGGER}
    if not all(file.is_file() for file in files.values()):
        return

    def reference() -> FileResponse:
        return FileResponse(folder / "reference.html")

    def swagger(name: str) -> FileResponse:
        if name not in files:
            raise HTTPException(404)
        return FileResponse(files[name])

    app.add_api_route(REFERENCE, reference, include_in_schema=False)
    app.add_api_route(f"{REFERENCE}/{{name}}", swagger, include_in_schema=False)
