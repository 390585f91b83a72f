"""The pages: static files, and the one page that shows every address of them."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

FOLDER = Path(__file__).resolve().parent / "front"
_RUNS = ("/runs", "/runs/{run_id}", "/runs/{run_id}/items", "/runs/{run_id}/items/{item_id}")
VIEWER = (*_RUNS, "/metrics", "/compare", "/checks", "/sql")
REFERENCE = "/reference"  # the API's own page, on which it can be tried
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")


def add_pages(app: FastAPI, addresses: Sequence[str], *, only_viewer: bool = False, folder: Path = FOLDER) -> None:
    """Serve the pages at their addresses, where the folder is there; `only_viewer` leaves out those of scoring."""
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
    app.mount("/", StaticFiles(directory=folder, html=True))


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
