"""The server: starts Prefect where none is configured, and a runner where there are no workers; ends in good order."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import FrameType

import httpx
from uvicorn.config import LOGGING_CONFIG

from core.default_lake import whole_address
from core.errors import EvalakeError
from service.listening import Server, require_reachable_by_whom
from service.scoring.app_state import AppState
from service.scoring.settings import ScoringSettings
from service.sockets import address_of, listen
from service.supervised import Supervised
from tasks.runtime.logs import as_json, redact_logs

START_SECONDS = 120.0
LARGEST_MESSAGE = 65_536  # bytes that a WebSocket client may send at once

logger = logging.getLogger("evalake.service")


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
    holding: Sequence[socket.socket] = (),
) -> None:
    """Serve at a listening socket of a host; `holding` has the Prefect server's, where this process inherited it."""
    _show_logs()
    with _prefect(holding) as (is_lasting, held), _runner(settings, held) as runs_here:
        from service.app import create_app

        app = create_app(settings, host)
        app_state: AppState = app.state.app_state
        app_state.gateway.is_lasting = is_lasting
        app_state.sessions.read_sources()
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
        server.drain_seconds = settings.configuration.service.drain_seconds if runs_here else 0.0
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

    # Both are set before it runs
    app_state: AppState
    drain_seconds: float

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at the second."""
        if self.app_state.scorings.draining:
            super().handle_exit(sig, frame)
            return
        self.app_state.scorings.draining = True
        threading.Thread(target=self._drain, args=(sig,), name="drain", daemon=True).start()

    def _drain(self, sig: int) -> None:
        deadline = time.monotonic() + self.drain_seconds
        while time.monotonic() < deadline and self.app_state.is_scoring():
            time.sleep(0.2)
        super().handle_exit(sig, None)


@contextmanager
def _prefect(holding: Sequence[socket.socket]) -> Iterator[tuple[bool, Sequence[socket.socket]]]:
    """Use the configured Prefect server, or start one.

    Yields whether it outlives this process, and its listening socket where this process has it.
    """
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if configured := PREFECT_API_URL.value():
        is_there = partial(_answers, f"{configured.rstrip('/')}/health")
        _wait_until(is_there, f"the Prefect server at {configured} to answer", lambda: True)
        yield True, holding
        return
    os.environ["PREFECT_SERVER_UI_ENABLED"] = "false"  # nobody knows the password that its pages would ask for
    with listen("127.0.0.1", 0) as listener:
        server = Supervised("service.local.server", str(listener.fileno()), holding=[listener])
        try:
            _wait_until(server.is_ready, "the Prefect server to start", lambda: server.is_running)
            os.environ["PREFECT_API_URL"] = url = f"{address_of(listener)}/api"  # for the runner, and its flow runs
            with temporary_settings({PREFECT_API_URL: url}):
                yield False, [listener]
        finally:
            os.environ.pop("PREFECT_API_URL", None)
            server.stop()


def _answers(url: str) -> bool:
    """Tell whether a server that the user has named answers; no password is sent."""
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def _runner(settings: ScoringSettings, holding: Sequence[socket.socket] = ()) -> Iterator[bool]:
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
    runner = Supervised("service.lifeline", "service.scoring.runner", str(limit), lake, holding=holding)
    try:
        import_module("service.app")  # seconds, in which the runner comes up
        _wait_until(
            lambda: gateway.declared_at() not in (None, before),
            "the scoring flow to be served",
            lambda: runner.is_running,
        )
        yield True
    finally:
        runner.stop()


def _wait_until(true: Callable[[], bool], what: str, alive: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not true():
        if not alive():
            raise EvalakeError(f"waited for {what}, but its process ended: its messages are above")
        if time.monotonic() > deadline:
            raise EvalakeError(f"waited {START_SECONDS:g} seconds for {what}")
        time.sleep(0.2)
