"""The service behind `evalake serve`: its application, the Prefect server that it needs, and its end in good order."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType

import httpx
from fastapi import FastAPI
from uvicorn.config import LOGGING_CONFIG

from evalake.core.errors import EvalakeError
from evalake.models.direct import warm_up
from evalake.server.listening import Server, require_reachable_by_whom
from evalake.server.local.server import TemporaryServer
from evalake.server.pages import add_pages
from evalake.server.processes import listen
from evalake.server.scoring import events
from evalake.server.scoring import routes as scoring_routes
from evalake.server.scoring.routes import AppState
from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.viewer import routes as viewer_routes
from evalake.server.viewer.access import new_application
from evalake.tasks.runtime.logs import as_json, redact_logs

START_SECONDS = 300.0
LARGEST_MESSAGE = 65_536  # bytes that a WebSocket client may send at once

logger = logging.getLogger("evalake.service")


def create_app(settings: ScoringSettings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the service as an ASGI application. Prefect must be configured (PREFECT_API_URL) when it starts.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    app_state = AppState(settings)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        seconds = settings.configuration.service.follow_seconds
        following = events.follow(app_state.sessions, app_state.watch.hub, app_state.completions, seconds)
        with suppress(EvalakeError):  # else the watch logs it
            await app_state.watch.tell()  # so that who subscribes first is told the current state, too
        with app_state.queue.running():
            tasks = [asyncio.create_task(each) for each in (app_state.watch.run(), following)]
            yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    description = "Scores of agents' alert investigations, asked for and read."
    app = new_application(settings, bound, title="evalake scoring API", description=description, lifespan=alive)
    app.state.app_state = app_state
    for router in (scoring_routes.router, scoring_routes.reading, viewer_routes.router, events.router):
        app.include_router(router)
    add_pages(app)
    return app


def serve(settings: ScoringSettings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until told to stop. `announce` is called with the address, once requests are answered.

    Raises UsageError where others reach the service and it could not tell who asks, or the port is taken; EvalakeError
    where the service cannot start.
    """
    require_reachable_by_whom(settings, host)
    settings.check()
    with listen(host, port) as listener:
        serve_at(listener, host, settings, announce)


def serve_at(
    listener: socket.socket,
    host: str,
    settings: ScoringSettings,
    announce: Callable[[str], None],
    *,
    workers_to_come: Collection[str] = (),
) -> None:
    """Serve at a listening socket of a host; whoever starts it starts workers of the pools `workers_to_come` next."""
    _show_logs()
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()  # seconds, in which Prefect comes up
    with _prefect() as is_lasting:
        app = create_app(settings, host)
        app_state: AppState = app.state.app_state
        app_state.queue.is_lasting = is_lasting
        if (pool := app_state.queue.idle_pool()) is not None and pool not in workers_to_come:
            logger.warning("no worker of the work pool %s is online: scorings wait until there is one", pool)
        app_state.sessions.read_sources()
        app_state.scorings.renew()
        server = _Server(
            app,
            settings,
            listener,
            announce,
            log_config=None if as_json() else LOGGING_CONFIG,  # none: its lines go where all others go
            ws_max_size=LARGEST_MESSAGE,
            timeout_graceful_shutdown=1,  # drained before; one signal ends it all within 20 seconds
            lifespan="on",
        )
        server.app_state = app_state
        server.run()


def _show_logs() -> None:
    """Write the service's own log to the terminal, too, unlike the logs of Prefect."""
    redact_logs()
    if not as_json() and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False


class _Server(Server):
    """A server that, told to stop, first refuses new scorings and lets those under way come to their end."""

    app_state: AppState  # set before it runs
    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and drain at a signal from then on."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at the second."""
        if self._loop is None or self.app_state.scorings.draining:
            super().handle_exit(sig, frame)
            return
        self.app_state.scorings.draining = True
        asyncio.run_coroutine_threadsafe(self._drain(sig), self._loop)

    async def _drain(self, sig: int) -> None:
        try:
            await self.app_state.drain()
        finally:
            super().handle_exit(sig, None)


@contextmanager
def _prefect() -> Iterator[bool]:
    """Use the configured Prefect server, or start one; yields whether it outlives this process."""
    from prefect.settings import PREFECT_API_URL

    if configured := PREFECT_API_URL.value():
        deadline = time.monotonic() + START_SECONDS
        while not _answers(f"{configured.rstrip('/')}/health"):
            if time.monotonic() > deadline:
                raise EvalakeError(f"waited {START_SECONDS:g} seconds for the Prefect server at {configured} to answer")
            time.sleep(0.2)
        yield True
        return
    os.environ["PREFECT_SERVER_UI_ENABLED"] = "false"  # nobody knows the password that its pages would ask for
    server = TemporaryServer(options=())
    try:
        with server.in_use():
            yield False
    finally:
        server.stop()


def _answers(url: str) -> bool:
    """Tell whether a server that the user has named answers; no password is sent."""
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.HTTPError:
        return False
