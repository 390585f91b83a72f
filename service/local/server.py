"""A Prefect server at a listening socket that its parent has bound, as a process that ends with its parent.

`python -m service.local.server SOCKET` is the server of `evalake up` and `evalake serve`. `--temporary` behind it makes
that of one command, which ends after the last logs and events of the command.
"""

import os
import socket
import sys
from collections.abc import Callable
from importlib import import_module

import uvicorn
from typing_extensions import override

from service.lifeline import GRACE_SECONDS, follow_parent
from service.local.database import is_migrated, leave_working_directory, usual_database
from service.sockets import inherited
from tasks.runtime.prefect_internals import SERVER

TEMPORARY = "--temporary"
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
    from prefect.settings import (
        PREFECT_API_BLOCKS_REGISTER_ON_START,
        PREFECT_API_DATABASE_MIGRATE_ON_START,
        PREFECT_SERVER_API_KEEPALIVE_TIMEOUT,
        PREFECT_SERVER_API_WEBSOCKET_PING_INTERVAL,
        PREFECT_SERVER_API_WEBSOCKET_PING_TIMEOUT,
        PREFECT_SERVER_LOGGING_LEVEL,
        temporary_settings,
    )

    leave_working_directory()
    database = usual_database()
    try:
        is_there = database is not None and is_migrated(database)
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
        _Server(config, report_ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that reports when it accepts requests."""

    def __init__(self, config: uvicorn.Config, report_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._report_ready = report_ready

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._report_ready()


if __name__ == "__main__":
    main(*sys.argv[1:])
