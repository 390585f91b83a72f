"""The Prefect server of one command, as a process: it ends when the command has ended, however that ended.

The command holds the other end of this process's standard input. It has bound the socket, too, so that requests made
before the server is ready wait for it instead of failing.
"""

import atexit
import gc
import os
import socket
import sys
import threading
from concurrent.futures import Future
from importlib import import_module
from typing import TYPE_CHECKING

from service.local.database import is_migrated, usual_database
from tasks.runtime.prefect_internals import SERVER

if TYPE_CHECKING:
    import uvicorn

GRACE_SECONDS = 5
# By these `create_app` recognises Prefect's own temporary servers: they have no pages, and none of the services that
# start, look for or tidy away runs over hours. The services that record runs, task runs, events and logs stay.
TEMPORARY = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


def main(descriptor: int) -> None:
    """Serve on the socket with this number, until standard input ends."""
    os.environ.update(TEMPORARY)
    import uvicorn

    made: Future[uvicorn.Server] = Future()
    threading.Thread(target=_end_with_input, args=(made,), daemon=True).start()

    from prefect.settings import (
        PREFECT_API_BLOCKS_REGISTER_ON_START,
        PREFECT_API_DATABASE_MIGRATE_ON_START,
        temporary_settings,
    )

    database = usual_database()
    try:
        ready = database is not None and is_migrated(database)
    except OSError:  # the command reports it, for it reads the folder, too
        sys.exit(1)
    import_module(SERVER.partition(":")[0])  # seconds, in which the command may end
    changed = {PREFECT_API_DATABASE_MIGRATE_ON_START: False, PREFECT_API_BLOCKS_REGISTER_ON_START: False}
    with temporary_settings(changed if ready else {}), socket.socket(fileno=descriptor) as listener:
        config = uvicorn.Config(SERVER, factory=True, log_level="error", lifespan="on")
        config.timeout_graceful_shutdown = GRACE_SECONDS
        made.set_result(server := uvicorn.Server(config))
        server.run(sockets=[listener])


def _end_with_input(made: "Future[uvicorn.Server]") -> None:
    """End with the command: at once where it ends before a server is made, as after a mistake, else politely."""
    while os.read(0, 1):
        pass
    if not made.done():
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # else a reader of the command's messages would wait
    made.result().should_exit = True
    atexit.register(gc.freeze)  # the interpreter need not look for garbage before it ends


if __name__ == "__main__":
    main(int(sys.argv[1]))
