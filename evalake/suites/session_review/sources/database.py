"""Sessions in a TARSy database, a SQLite file or Postgres: read only, and without getting in the way of its owner.

A SQLite file is copied first (`evalake.sdk.sqlite`). Postgres is read in one read-only transaction; that blocks nobody.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from evalake.core.errors import SourceError
from evalake.core.files import Files, tables_beside
from evalake.sdk import sqlite
from evalake.sdk.remote import for_postgres, reason_of
from evalake.suites.session_review.session import TERMINAL, Session
from evalake.suites.session_review.sources import require_whole
from evalake.suites.session_review.sources.generic import RefusedError, decoded
from evalake.suites.session_review.sources.tarsy import read_detail

Rows = Callable[[str, Mapping[str, Any]], list[Mapping[str, Any]]]
"""A function from a query and its parameters to the rows it gives."""

TABLES = ("alert_sessions", "stage_executions", "llm_interactions", "mcp_communications")
PATIENCE_SECONDS = 60.0  # for Postgres's answer
PARAMETERS = ("application_name", "unix_sock")  # of URLs: those that the driver takes as text

_QUERIES: Final = tables_beside(__file__, "queries.toml")["python"]
_JSON_COLUMNS = ("alert_data", "conversation", "tool_arguments", "tool_result", "available_tools")


@contextmanager
def open_sqlite(path: Path, files: Files | None = None) -> Iterator[Rows]:
    """Open a copy of the file for queries, as `evalake.sdk.sqlite` does; raises what that does."""
    with sqlite.open_sqlite(path, TABLES, files, "a TARSy database") as rows:
        yield lambda query, parameters: list(rows(query, parameters))


@contextmanager
def open_url(url: str) -> Iterator[Rows]:
    """Open a database behind a SQLAlchemy URL (`postgresql://user@host/database`) for queries.

    The password may be in the URL, or in PGPASSWORD. Raises SourceError, which never shows it.
    """
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with _connect(url) as connection:
            if connection.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

            def rows(query: str, parameters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
                return [dict(row) for row in connection.execute(text(query), parameters).mappings()]

            yield rows
            connection.rollback()
    except (SQLAlchemyError, OSError) as error:  # the driver raises OSError itself where a server falls silent
        raise _unreadable(url, error) from error


def require_connectable(url: str) -> None:
    """Raise SourceError, which never shows a password, for a URL that no driver could connect to."""
    made, shown = _url(url), hide_password(url)
    if unknown := [name for name, value in made.query.items() if name not in PARAMETERS or not isinstance(value, str)]:
        raise SourceError(f"the driver of {shown} takes no parameter {unknown[0][:60]!r}: leave it out of the URL")
    if _is_postgres(made) and not made.username:
        raise SourceError(f"{shown} names no user: give one, as in postgresql://user@host/database")


def _connect(url: str) -> Any:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool  # a service reads its sources again and again: each connection is to end

    require_connectable(url)
    made, patience = _url(url), dict[str, float]()
    if _is_postgres(made):
        made, patience = for_postgres(made), {"timeout": PATIENCE_SECONDS}
    try:
        return create_engine(made, poolclass=NullPool, connect_args=patience).connect()
    except (SQLAlchemyError, OSError, ValueError, OverflowError) as error:  # hosts and ports that cannot be
        raise _unreadable(url, error) from error


def _unreadable(url: str, error: Exception) -> SourceError:
    return SourceError(f"{hide_password(url)} cannot be read as a TARSy database: {reason_of(error)}")


def hide_password(url: str) -> str:
    """Write the URL as it may be shown and stored: without its password and its parameters, as one may be a password.

    Raises SourceError where it is no URL.
    """
    return str(_url(url).set(query={}).render_as_string(hide_password=True))


def database_name(url: str) -> str:
    """Read the name of the database from a URL."""
    return str(_url(url).database or "sessions")


def _url(url: str) -> Any:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        raise SourceError("the database URL is not of the form postgresql://user@host:port/database") from error


def _is_postgres(made: Any) -> bool:
    return made.drivername.partition("+")[0] in ("postgres", "postgresql")


def read_sessions(rows: Rows) -> Iterator[tuple[str, Session | RefusedError]]:
    """Yield every session of a database in the order in which they began, or why it is none; one is held at a time."""
    for row in rows(_QUERIES["sessions"], {}):
        session_id = str(row["session_id"])
        try:
            yield session_id, _session(rows, session_id, row["status"])
        except RefusedError as refused:
            yield session_id, refused


def _session(rows: Rows, session_id: str, status: Any) -> Session:
    wanted = {"session_id": session_id}
    if status not in TERMINAL:
        return read_detail({"session_id": session_id, "status": status, "stages": []})
    if len(found := rows(_QUERIES["session"], wanted)) != 1:  # an id that is no UTF-8, or stands twice
        raise RefusedError(f"{len(found)} rows have its session_id")
    calls: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for kind, key, query in (("llm", "interaction_id", "said"), ("mcp", "communication_id", "tools")):
        for call in rows(_QUERIES[query], wanted):
            event = {"id": call[key], "type": kind, "timestamp_us": call["timestamp_us"], "details": _decoded(call)}
            calls[call["stage_execution_id"]].append(event)
    stages = [
        {**stage, "chronological_interactions": calls.pop(stage["execution_id"], [])}
        for stage in rows(_QUERIES["stages"], wanted)
    ]
    children = defaultdict(list)
    for stage in stages:
        children[stage["parent_stage_execution_id"]].append(stage)
    nested = [{**stage, "parallel_executions": children[stage["execution_id"]]} for stage in children[None]]
    loose = [event for of_nobody in calls.values() for event in of_nobody]
    about = {**_decoded(found[0]), "session_level_interactions": loose}
    session = read_detail({**about, "stages": nested})
    require_whole({**about, "stages": stages}, session)  # all of them, also one whose parent is gone
    return session


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decoded(value) if name in _JSON_COLUMNS else value for name, value in row.items()}
