"""The viewer alone: the pages of runs and items over one lake. It writes nothing and needs no Prefect."""

import math
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse

from service.access_control import AccessControl
from service.error_answers import add_error_answers
from service.hosts import Hosts
from service.listening import address_of, listening, require_reachable_by_whom
from service.pages import VIEWER, add_pages
from service.pauses import spare_what_lasts
from service.protocol import bounded_protocol
from service.security import SecurityHeaders
from service.settings import Settings
from service.viewer import routes
from service.viewer.access import add_state
from tasks.runtime.context import CODE_VERSION


def create_viewer(settings: Settings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the viewer as an ASGI application.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    app = FastAPI(
        title="evalake viewer",
        version=CODE_VERSION,
        description="Runs, their metrics, and every sample of them, to be read.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
    )
    app.add_middleware(
        AccessControl, settings=settings, hosts=Hosts(bound, settings.configuration.service.allowed_hosts)
    )
    add_state(app, settings.lake)
    add_error_answers(app)
    app.include_router(routes.router)

    @app.get("/api/v1/status")
    def read_status(request: Request) -> dict[str, str | bool | None]:
        """Read the version, and who is asking."""
        return {"version": CODE_VERSION, "user": request.state.user, "prefect_url": None, "only_viewer": True}

    @app.get("/", include_in_schema=False)
    def first_page() -> RedirectResponse:
        return RedirectResponse("/runs")

    add_pages(app, VIEWER, only_viewer=True)
    return app


def view(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the viewer until told to stop. `announce` is called with the address, once requests are answered.

    Raises UsageError where others reach the viewer and it could not tell who asks, or the port is taken.
    """
    require_reachable_by_whom(settings, host)
    with listening(host, port) as listener:
        limits = settings.configuration.service
        config = uvicorn.Config(
            SecurityHeaders(create_viewer(settings, host)),
            http=bounded_protocol(limits.request_seconds, limits.connections),
            log_level="warning",
            server_header=False,
            timeout_keep_alive=math.ceil(limits.request_seconds),  # not the five seconds after which clients leave, too
            proxy_headers=False,  # trusted proxies are named in evalake.toml
            timeout_graceful_shutdown=5,
        )
        server = _Server(config, lambda: announce(address_of(listener)))
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that calls `when_started` once it answers."""

    def __init__(self, config: uvicorn.Config, when_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_started = when_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `when_started`."""
        await super().startup(sockets)
        if self.started:
            spare_what_lasts()
            self._when_started()
