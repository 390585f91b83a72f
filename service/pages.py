"""The dashboard: static files, and the one page that shows every address of it."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from service.addresses import SESSION

FOLDER = Path(__file__).resolve().parent / "dashboard"
ADDRESSES = (SESSION, "/trends", "/runs")


def add_pages(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve the dashboard, where it is there."""
    page = folder / "index.html"
    if not page.is_file():
        return

    def index() -> FileResponse:
        return FileResponse(page)

    for address in ADDRESSES:
        app.add_api_route(address, index, include_in_schema=False)
    app.mount("/", StaticFiles(directory=folder, html=True))
