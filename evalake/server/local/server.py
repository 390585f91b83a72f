"""A Prefect server at a listening socket that its parent has bound, as a process that ends with its parent.

`python -m evalake.server.local.server SOCKET` is the server of `evalake up` and `evalake serve`. `--temporary` behind
it makes that of one command, `TemporaryServer`: it starts while the command looks at what it has to do, and ends after
the last logs and events of the command.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from evalake.core.errors import EvalakeError, UsageError
from evalake.core.phases import phase
from evalake.server.local.database import is_migrated, leave_working_directory, usual_database
from evalake.server.processes import GRACE_SECONDS, Supervised, address_of, follow_parent, inherited, listen
from evalake.tasks.runtime.server import SERVER

if TYPE_CHECKING:
    import uvicorn

TEMPORARY = "--temporary"
WAIT_SECONDS = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
SHUTDOWN_SECONDS = 5
LAST_EVENTS_SECONDS = 60.0
# `create_app` reads these. Without final, it keeps what only a second server in its process would need.
FINAL = {"PREFECT__SERVER_FINAL": "1"}
# By these it recognises Prefect's own temporary servers: they have no pages, and none of the services that
# start, look for or tidy away runs over hours. The services that record runs, task runs, events and logs stay.
EPHEMERAL = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}


def main(descriptor: str, *options: str) -> None:
    """Serve at the socket with this number until the parent ends."""
    is_temporary = TEMPORARY in options
    report_ready = follow_parent(LAST_EVENTS_SECONDS if is_temporary else GRACE_SECONDS, silently=is_temporary)
    os.environ.update({**FINAL, **(EPHEMERAL if is_temporary else {})})
    import uvicorn
    from prefect.settings import (
        PREFECT_API_BLOCKS_REGISTER_ON_START,
        PREFECT_API_DATABASE_MIGRATE_ON_START,
        PREFECT_SERVER_API_KEEPALIVE_TIMEOUT,
        PREFECT_SERVER_API_WEBSOCKET_PING_INTERVAL,
        PREFECT_SERVER_API_WEBSOCKET_PING_TIMEOUT,
        PREFECT_SERVER_LOGGING_LEVEL,
        temporary_settings,
    )

    try:
        leave_working_directory()
        database = usual_database()
        is_there = database is not None and is_migrated(database)
    except UsageError as error:
        sys.exit(f"evalake: {error}")
    except OSError as error:
        sys.exit(f"evalake: the database of the Prefect server cannot be made in {database}: {error.strerror}")
    import_module(SERVER.partition(":")[0])  # seconds, in which the parent may end
    changed = {PREFECT_API_DATABASE_MIGRATE_ON_START: False, PREFECT_API_BLOCKS_REGISTER_ON_START: False}
    with temporary_settings(changed if is_there else {}), inherited(descriptor) as listener:
        config = uvicorn.Config(
            SERVER,
            factory=True,
            lifespan="on",
            log_level="error" if is_temporary else PREFECT_SERVER_LOGGING_LEVEL.value().lower(),
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            timeout_keep_alive=PREFECT_SERVER_API_KEEPALIVE_TIMEOUT.value(),
            ws_ping_interval=PREFECT_SERVER_API_WEBSOCKET_PING_INTERVAL.value(),
            ws_ping_timeout=PREFECT_SERVER_API_WEBSOCKET_PING_TIMEOUT.value(),
        )
        _reporting(config, report_ready).run(sockets=[listener])


def _reporting(config: "uvicorn.Config", report_ready: Callable[[], None]) -> "uvicorn.Server":
    """Make a server that reports when it accepts requests."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                report_ready()

    return Server(config)


class TemporaryServer:
    """A server that ends when this process has ended, after the last of its logs and events; nothing waits for that."""

    def __init__(self) -> None:
        self._listener = listen("127.0.0.1", 0)  # kept, so that nobody else can listen there if the server crashes
        self._url = f"{address_of(self._listener)}/api"
        words = ("evalake.server.local.server", str(self._listener.fileno()), TEMPORARY)
        self._server = Supervised(*words, holding=[self._listener])

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._server.pid

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have Prefect use this server, here and in processes that are started meanwhile.

        Raises EvalakeError where it does not start.
        """
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with phase("wait for the Prefect server"):
            self._wait()
        os.environ["PREFECT_API_URL"] = self._url
        try:
            with temporary_settings({PREFECT_API_URL: self._url}):
                yield
        finally:
            del os.environ["PREFECT_API_URL"]

    def _wait(self) -> None:
        seconds = float(os.environ[WAIT_SECONDS])
        deadline = time.monotonic() + seconds
        while not self._server.is_ready(within_seconds=0.1):
            if not self._server.is_running:
                raise EvalakeError("the temporary Prefect server did not start: its messages are above")
            if time.monotonic() > deadline:
                raise EvalakeError(
                    f"the temporary Prefect server took longer than {seconds:g} s to start: "
                    f"{WAIT_SECONDS} gives it more"
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
