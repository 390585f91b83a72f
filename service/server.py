"""The server: starts Prefect where none is configured, and a runner where there are no workers; ends in good order."""

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import httpx
import uvicorn
from uvicorn.config import LOGGING_CONFIG

from core.default_lake import whole_address
from core.errors import EvalakeError
from service.beside import Beside, free_port
from service.listening import address_of, listening, require_reachable_by_whom
from service.pauses import spare_what_lasts
from service.protocol import bounded_protocol
from service.scoring.app_state import AppState
from service.scoring.settings import ScoringSettings
from service.security import SecurityHeaders
from tasks.runtime.logs import as_json, redact_logs

START_SECONDS = 120.0
LARGEST_MESSAGE = 65_536  # bytes that a WebSocket client may send at once

logger = logging.getLogger("evalake.service")


def serve(settings: ScoringSettings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until told to stop. `announce` is called with the address, once requests are answered.

    Raises UsageError where others reach the service and it could not tell who asks, EvalakeError where it cannot start.
    """
    require_reachable_by_whom(settings, host)
    settings.check()
    _show_logs()
    with listening(host, port) as listener, _prefect() as is_lasting, _runner(settings) as runs_here:
        from service.app import create_app

        app = create_app(settings, host)
        app_state: AppState = app.state.app_state
        app_state.gateway.is_lasting = is_lasting
        app_state.sessions.read_sources()
        limits = settings.configuration.service
        config = uvicorn.Config(
            SecurityHeaders(app),
            http=bounded_protocol(limits.request_seconds, limits.connections),
            log_config=None if as_json() else LOGGING_CONFIG,  # none: its lines go where all others go
            log_level="warning",
            server_header=False,
            timeout_keep_alive=math.ceil(limits.request_seconds),  # not the five seconds after which clients leave, too
            proxy_headers=False,  # trusted proxies are named in evalake.toml
            ws_max_size=LARGEST_MESSAGE,
            timeout_graceful_shutdown=1,  # drained before; one signal ends it all within 20 seconds
            lifespan="on",
        )
        server = _Server(config, app_state, limits.drain_seconds if runs_here else 0.0)
        server.when_started = lambda: announce(address_of(listener))
        server.run(sockets=[listener])


def _show_logs() -> None:
    """Write the service's own log to the terminal, too, unlike the logs of Prefect."""
    redact_logs()
    if not as_json() and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False


class _Server(uvicorn.Server):
    """A server that, told to stop, first refuses new scorings and lets those under way come to their end."""

    def __init__(self, config: uvicorn.Config, app_state: AppState, drain_seconds: float) -> None:
        super().__init__(config)
        self.when_started: Callable[[], None] = lambda: None
        self._app_state, self._drain_seconds = app_state, drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `when_started`."""
        await super().startup(sockets)
        if self.started:
            spare_what_lasts()
            self.when_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at the second."""
        if self._app_state.scorings.draining:
            super().handle_exit(sig, frame)
            return
        self._app_state.scorings.draining = True
        threading.Thread(target=self._drain, args=(sig,), name="drain", daemon=True).start()

    def _drain(self, sig: int) -> None:
        deadline = time.monotonic() + self._drain_seconds
        while time.monotonic() < deadline and self._app_state.is_scoring():
            time.sleep(0.2)
        super().handle_exit(sig, None)


@contextmanager
def _prefect() -> Iterator[bool]:
    """Use the configured Prefect server, or start one beside this process; yields whether it outlives this process."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if configured := PREFECT_API_URL.value():
        is_there = partial(_answers, f"{configured.rstrip('/')}/health")
        _wait_until(is_there, f"the Prefect server at {configured} to answer", lambda: True)
        yield True
        return
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    os.environ["PREFECT_SERVER_UI_ENABLED"] = "false"  # nobody knows the password that its pages would ask for
    server = Beside("prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port))
    try:
        name, _, password = os.environ["PREFECT_API_AUTH_STRING"].partition(":")
        lets_us_in = partial(_answers, f"{url}/admin/version", httpx.BasicAuth(name, password))  # another's would not
        _wait_until(lets_us_in, "the Prefect server to start", lambda: server.is_running)
        os.environ["PREFECT_API_URL"] = url  # for the runner, and the flow runs that it starts
        with temporary_settings({PREFECT_API_URL: url}):
            yield False
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        server.stop()


@contextmanager
def _runner(settings: ScoringSettings) -> Iterator[bool]:
    """Start a runner of the scoring flow, unless its deployment has workers; yields whether there is a runner."""
    from service.scoring.prefect_gateway import PrefectGateway

    gateway = PrefectGateway(settings.lake.uri, settings.configuration_file)
    if gateway.has_pool():
        if (pool := gateway.idle_pool()) is not None:
            logger.warning("no worker of the work pool %s is online: scorings wait until there is one", pool)
        yield False
        return
    limit, lake = settings.configuration.service.scorings_at_once, whole_address(settings.lake.uri)
    before = gateway.declared_at()  # by an earlier runner of this lake, where the server is a lasting one
    runner = Beside("service.scoring.runner", str(limit), lake)
    try:
        _wait_until(
            lambda: gateway.declared_at() not in (None, before),
            "the scoring flow to be served",
            lambda: runner.is_running,
        )
        yield True
    finally:
        runner.stop()


def _answers(url: str, way_in: httpx.Auth | None = None) -> bool:
    try:
        return httpx.get(url, timeout=5, auth=way_in).is_success
    except httpx.HTTPError:
        return False


def _wait_until(true: Callable[[], bool], what: str, alive: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not true():
        if not alive():
            raise EvalakeError(f"waited for {what}, but its process ended: its messages are above")
        if time.monotonic() > deadline:
            raise EvalakeError(f"waited {START_SECONDS:g} seconds for {what}")
        time.sleep(0.2)
