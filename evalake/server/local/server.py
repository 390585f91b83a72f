"""A Prefect server at a listening socket that its parent has bound, as a process that ends with its parent.

`python -m evalake.server.local.server SOCKET` is the server of `evalake up` and `evalake serve`. `--temporary` behind
it makes that of one command, `TemporaryServer`: it starts while the command looks at what it has to do, and ends after
the last logs and events of the command.

A new database is a copy of a migrated template, because migrating one takes a server ten seconds or more. The template,
with all tables and block types and no runs, is made once for each version of Prefect, by `make setup` or the first
server (`python -m evalake.server.local.server`), and kept in the user's cache.
"""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evalake.core.errors import UsageError
from evalake.core.files import cache_folder, is_ours, make_private
from evalake.core.phases import phase
from evalake.core.prefect_settings import prefect_home, prefect_setting
from evalake.server.processes import GRACE_SECONDS, Supervised, address_of, follow_parent, inherited, listen
from evalake.tasks.runtime.server import SERVER, create_database

if TYPE_CHECKING:
    import uvicorn

TEMPORARY = "--temporary"
WAIT_SECONDS = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
START_SECONDS = 120
SHUTDOWN_SECONDS = 5
LAST_EVENTS_SECONDS = 60.0
# `create_app` reads these. Without final, it keeps what only a second server in its process would need.
FINAL = {"PREFECT__SERVER_FINAL": "1"}
# By these it recognises Prefect's own temporary servers: they have no pages, and none of the services that
# start, look for or tidy away runs over hours. The services that record runs, task runs, events and logs stay.
EPHEMERAL = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}

PRIVATE = 0o600
# Each of these can move a server's database out of its home.
_ELSEWHERE = [
    f"PREFECT_{of}_DATABASE_{what}" for of in ("SERVER", "API") for what in ("CONNECTION_URL", "DRIVER", "NAME")
]
# A SQLite file whose path is none from the root
_FROM_HERE = re.compile(r"sqlite\S*?:///(?!/|:memory:|file:)")


def template() -> Path:
    """Name the file of the template for the installed version of Prefect."""
    return cache_folder() / f"prefect-{version('prefect')}.db"


def is_migrated(database: Path) -> bool:
    """Make the database from the template where it is missing; tell whether it has the schema and block types already.

    False also where this is unknown, because no template could be made, or another user has made it: Prefect then
    checks for itself.
    """
    if not is_ours(template()):
        return False
    if not template().is_file():
        # In a process of its own: Prefect knows one database for the life of a process.
        made = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", "evalake.server.local.server"], stdin=subprocess.DEVNULL
        )
        if made.returncode:
            return False
    if not database.exists():
        _copy(template(), database)
    expected, there = _schema_of(template()), _schema_of(database)
    return expected is not None and there is not None and there[0] == expected[0] and there[1] >= expected[1]


def usual_database() -> Path | None:
    """Name the file of the database of a server that is started here; None where its settings may name another."""
    return None if any(map(prefect_setting, _ELSEWHERE)) else prefect_home() / "prefect.db"


def leave_working_directory() -> None:
    """Have a server run in the root folder: its migrations import modules from the working directory before all others.

    Raises UsageError where its database is named from the working directory, and would be another one then.
    """
    for name in _ELSEWHERE:
        value = prefect_setting(name) or ""
        if _FROM_HERE.match(value):
            raise UsageError(f"{name} is {value}: write the whole path of the file, sqlite+aiosqlite:////…")
    os.environ["PREFECT_HOME"] = str(prefect_home().absolute())
    os.chdir("/")


def make_template() -> None:
    """Make the template where it is missing. A reader never sees half of one."""
    target = template()
    if target.is_file():
        return
    make_private(target.parent)
    with TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "prefect.db"
        create_database(made)
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        made.chmod(PRIVATE)
        made.replace(target)


def _copy(source: Path, target: Path) -> None:
    """Copy a whole database into place at once.

    A database that was put there meanwhile stays; on a file system without hard links, Prefect makes its own.
    """
    make_private(target.parent)
    with TemporaryDirectory(dir=target.parent) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(source, copy)
        copy.chmod(PRIVATE)
        with suppress(OSError):
            os.link(copy, target)


def _schema_of(database: Path) -> tuple[str, int] | None:
    """Read the schema's revision and the number of block types; None for a database of another program."""
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            blocks = connection.execute("SELECT count(*) FROM block_type").fetchone()
    except sqlite3.Error:
        return None
    return (revision[0], blocks[0]) if revision else None


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
    """A server of this process; that of a command ends after its last logs and events, and nothing waits for that."""

    def __init__(self, options: Sequence[str] = (TEMPORARY,)) -> None:
        self._listener = listen("127.0.0.1", 0)  # kept, so that nobody else can listen there if the server crashes
        self._url = f"{address_of(self._listener)}/api"
        words = ("evalake.server.local.server", str(self._listener.fileno()), *options)
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

        seconds, more = float(os.environ.get(WAIT_SECONDS, START_SECONDS)), f"{WAIT_SECONDS} gives it more time"
        with phase("wait for the Prefect server"):
            self._server.wait_until_ready("the Prefect server", seconds, f"its messages are above, and {more}")
        os.environ["PREFECT_API_URL"] = self._url
        try:
            with temporary_settings({PREFECT_API_URL: self._url}):
                yield
        finally:
            del os.environ["PREFECT_API_URL"]

    def stop(self) -> None:
        """End it now."""
        self._server.stop()
        self._listener.close()


if __name__ == "__main__":
    if sys.argv[1:]:
        main(*sys.argv[1:])
    else:
        leave_working_directory()
        make_template()
