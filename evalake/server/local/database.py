"""The database of a local Prefect server; a new one is a copy of a migrated template.

Migrating a new database takes a Prefect server ten seconds or more. The template, with all tables and block types and
no runs, is made once for each version of Prefect, by `make setup` or the first server, and kept in the user's cache.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from evalake.core.errors import UsageError
from evalake.core.files import cache_folder, is_ours, make_private
from evalake.core.prefect_settings import prefect_home, prefect_setting
from evalake.tasks.runtime.server import create_database

PRIVATE = 0o600
# With any of these a server's database is not the file in its home, or may not be.
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
            [sys.executable, "-P", "-W", "ignore", "-m", "evalake.server.local.database"], stdin=subprocess.DEVNULL
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


if __name__ == "__main__":
    leave_working_directory()
    make_template()
