"""A database as TARSy makes it, with a session that is over and one that is running."""

import sqlite3
from contextlib import closing
from pathlib import Path


def make_database(path: Path) -> Path:
    """A SQLite file with the two sessions."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(Path(__file__).with_name("tarsy.sql").read_text(encoding="utf-8"))
    return path
