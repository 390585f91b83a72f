"""Sessions in a real PostgreSQL: the same as from SQLite, read with a password, and nothing written or held up."""

import gc
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from evalake.core.errors import SourceError
from evalake.sdk import Dataset
from evalake.sdk.remote import fetched
from evalake.suites.session_review.sources.database import open_url
from evalake.suites.session_review.sources.read import read_dataset
from tests.e2e.processes import wait_until
from tests.servers.postgresql import PASSWORD, copy_sqlite, with_password
from tests.unit.suites.session_review.sources.tarsy_database import make_database

pytestmark = pytest.mark.e2e


@pytest.fixture
def address(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's address; the password is where its users keep it."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgresql


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_database(tmp_path / "tarsy.db")


def inputs(dataset: Dataset) -> dict[str, str]:
    return {sample.sample_id: sample.input for sample in dataset.samples}


def test_sessions_are_those_of_the_same_rows_in_sqlite(database: Path, address: str) -> None:
    copy_sqlite(database, address)
    found = read_dataset(address)
    assert found.name == "postgres"
    assert inputs(found) == inputs(read_dataset(str(database)))
    assert [(left.where, left.reason) for left in found.skipped] == [("postgres: running", "session is not over")]


def test_reading_writes_nothing_and_holds_nobody_up(database: Path, address: str) -> None:
    copy_sqlite(database, address)
    with pytest.raises(SourceError, match="read-only"), open_url(address) as rows:
        rows("UPDATE alert_sessions SET status = 'failed' RETURNING session_id", {})
    count = "SELECT count(*) AS said FROM llm_interactions"
    with open_url(address) as rows:
        before = rows(count, {})
        owner = create_engine(with_password(address))
        with owner.begin() as writer:
            writer.execute(text("SET lock_timeout = '1s'"))
            writer.execute(text("DELETE FROM llm_interactions"))
        owner.dispose()
        assert rows(count, {}) == before != [{"said": 0}]  # as they were when reading began


def test_a_query_is_a_table_for_any_suite(address: str) -> None:
    for url in (address, address.replace("://", "+psycopg2://")):
        file, mapping = fetched(f"{url}?query=select 1 as n&question=n") or (Path(), "")
        assert (file.read_text(), mapping) == ('{"n": 1}\n', "question=n")


def test_no_connection_is_left_open(database: Path, address: str) -> None:
    """A service reads its sources again for every unknown id, for as long as it runs."""
    copy_sqlite(database, address)
    theirs = "SELECT count(*) AS said FROM pg_stat_activity WHERE backend_type = 'client backend'"

    def is_alone() -> bool:
        with open_url(address) as rows:
            return rows(theirs, {}) == [{"said": 1}]

    gc.disable()
    try:
        for _ in range(3):
            read_dataset(address)
        assert wait_until(is_alone, "the server to end what was closed")
    finally:
        gc.enable()


def test_a_wrong_password_is_told_without_showing_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "not the one")
    with pytest.raises(SourceError, match="password authentication failed") as refused:
        read_dataset(address)
    assert "not the one" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_database_without_sessions_says_what_is_missing(address: str) -> None:
    owner = create_engine(with_password(address))
    with owner.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS alert_sessions CASCADE"))
    owner.dispose()
    with pytest.raises(SourceError, match="alert_sessions"):
        read_dataset(address)


@pytest.mark.real_data
def test_real_databases_give_the_same_sessions_from_postgres(real_data: Path, address: str) -> None:
    files = sorted((real_data / "tarsy" / "py_e2e_db").glob("*.db"))
    assert len(files) == 5
    for file in files:
        copy_sqlite(file, address)
        assert inputs(read_dataset(address)) == inputs(read_dataset(str(file)))
