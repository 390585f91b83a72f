"""The names of Prefect's server that it does not promise to keep are there, and do what we take them for."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ImportString, TypeAdapter

from evalake.tasks.runtime.server import SERVER, create_database, scheduled_times


def test_the_server_can_be_made() -> None:
    assert callable(TypeAdapter(ImportString).validate_python(SERVER))


def test_a_database_has_the_tables_and_the_kinds_of_blocks(tmp_path: Path) -> None:
    create_database(tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        names = {name for (name,) in connection.execute("SELECT slug FROM block_type")}
    assert revision
    assert "secret" in names


def test_times_are_those_of_the_scheduler_up_to_but_not_with_the_end() -> None:
    begin, end = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    assert scheduled_times("0 */8 * * *", "UTC", begin, end, most=10) == [
        datetime(2026, 3, 29, hour, tzinfo=UTC) for hour in (0, 8, 16)
    ]
    assert len(scheduled_times("* * * * *", "UTC", begin, end, most=5)) == 5


def test_a_day_that_puts_its_clocks_forward_keeps_its_local_hour() -> None:
    begin, end = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    hours = [moment.astimezone(UTC).hour for moment in scheduled_times("0 9 * * *", "Europe/Berlin", begin, end, 10)]
    assert hours == [8, 7]
