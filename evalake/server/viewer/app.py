"""The viewer alone: the pages of runs and items over one lake, without Prefect. With --write it keeps labels."""

from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse

from evalake.server.auth import Hosts
from evalake.server.listening import Server, require_reachable_by_whom
from evalake.server.pages import add_pages, addresses
from evalake.server.processes import listen
from evalake.server.settings import Settings
from evalake.server.viewer import grading, routes
from evalake.server.viewer.access import new_application
from evalake.tasks.runtime.context import CODE_VERSION


def create_viewer(settings: Settings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the viewer as an ASGI application.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    description = "Runs, their metrics, and every sample of them, to be read."
    app = new_application(settings, bound, title="evalake viewer", description=description)
    for router in (routes.router, grading.router):
        app.include_router(router)
    if settings.writes:
        app.include_router(grading.writing(settings, Hosts(bound, settings.configuration.service.allowed_hosts)))

    @app.get("/api/v1/status")
    async def read_status(request: Request) -> dict[str, str | bool | None]:
        """Read the version, and who is asking."""
        return {
            "version": CODE_VERSION,
            "user": request.state.user,
            "prefect_url": None,
            "only_viewer": True,
            "writes": settings.writes,
        }

    @app.get("/", include_in_schema=False)
    async def first_page() -> RedirectResponse:
        return RedirectResponse(addresses()["viewer"]["runs"])

    add_pages(app, only_viewer=True)
    return app


def view(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the viewer until told to stop. `announce` is called with the address, once requests are answered.

    Raises UsageError where others reach the viewer and it could not tell who asks, or the port is taken.
    """
    require_reachable_by_whom(settings, host)
    with listen(host, port) as listener:
        Server(create_viewer(settings, host), settings, listener, announce, timeout_graceful_shutdown=5).run()
