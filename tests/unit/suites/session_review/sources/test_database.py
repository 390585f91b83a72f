"""TARSy databases are read like its API's bodies, and are left exactly as they were."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.core.files import Files
from evalake.suites.session_review.session import AgentMessage, Event, Session, load
from evalake.suites.session_review.sources.database import open_sqlite, open_url, read_sessions
from evalake.suites.session_review.sources.read import read_dataset
from tests.unit.suites.session_review.sources.tarsy_database import make_database


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_database(tmp_path / "tarsy.db")


def the_session(path: Path) -> Session:
    (sample,) = read_dataset(str(path)).samples
    return load(sample.input)


def test_a_database_gives_the_sessions_that_are_over(database: Path) -> None:
    dataset = read_dataset(str(database))
    assert dataset.name == "tarsy"
    assert [(sample.sample_id, sample.category) for sample in dataset.samples] == [("over", "Disk")]
    assert [(left.where, left.reason, left.payload) for left in dataset.skipped] == [
        ("tarsy.db: running", "session is not over", None)
    ]


def test_children_pauses_and_errors_are_read_and_chats_and_judges_are_not(database: Path) -> None:
    session = the_session(database)
    (parent,) = session.stages
    assert [child.agent for child in parent.children] == ["a", "b"]
    assert [(each.kind, each.at_us) for each in session.interactions] == [
        ("said", 3),
        ("tool", 4),
        ("event", 5),
        ("tool", 6),
    ]
    assert [(call.arguments, call.result, call.error) for call in session.tool_calls] == [
        ('{"q": 1}', "found", None),
        ("{}", None, "denied"),
    ]
    assert isinstance(list(session.interactions)[2], Event)


def test_a_session_whose_calls_are_not_all_read_is_refused(database: Path) -> None:
    """Those of a stage whose parent is gone would be lost in silence."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE stage_executions SET parent_stage_execution_id = 'x' WHERE execution_id = 'two'")
    (refused,) = [left for left in read_dataset(str(database), may_be_empty=True).skipped if "over" in left.where]
    assert refused.reason == "unread: 2 of 2 tool calls and 1 of 1 tool results"


def test_text_that_is_not_utf8_spoils_itself_alone(database: Path) -> None:
    connection = sqlite3.connect(database)
    garbled = "UPDATE llm_interactions SET thinking_content = CAST(X'66FF' AS TEXT) WHERE interaction_id = 'i1'"
    connection.execute(garbled)
    connection.commit()
    connection.close()
    assert "f\ufffd" in {each.thinking for each in the_session(database).interactions if isinstance(each, AgentMessage)}


@pytest.mark.parametrize(("name", "rows"), [("'over'", 2), ("CAST(X'6FFF' AS TEXT)", 0)])
def test_an_id_that_names_no_one_row_spoils_no_other_session(tmp_path: Path, name: str, rows: int) -> None:
    twice = "CREATE TABLE one AS SELECT * FROM alert_sessions; DROP TABLE alert_sessions; "
    insert = f"INSERT INTO alert_sessions (session_id, status) VALUES ({name}, 'completed'), ('fine', 'failed');"
    error = "UPDATE alert_sessions SET error_message = 'no quota' WHERE session_id = 'fine'"
    with closing(sqlite3.connect(make_database(tmp_path / "tarsy.db"))) as connection:
        connection.executescript(f"{twice}ALTER TABLE one RENAME TO alert_sessions; {insert}{error}")
    (tmp_path / "other.db").write_bytes(b"no database")
    dataset = read_dataset(f"{tmp_path}?accept_empty=1")
    assert "fine" in [each.sample_id for each in dataset.samples]
    reasons = [each.reason for each in dataset.skipped]
    assert (f"{rows} rows have its session_id" in reasons, "file that cannot be read" in reasons) == (True, True)


def test_reading_leaves_a_database_and_its_folder_as_they_were(database: Path) -> None:
    def state() -> dict[str, tuple[str, int]]:
        return {
            file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
            for file in database.parent.iterdir()
        }

    before = state()
    read_dataset(str(database))
    assert state() == before


def test_a_writer_is_never_held_up_by_a_reader(database: Path) -> None:
    """The writer waits for no lock at all, and still commits while sessions are being read."""
    with open_sqlite(database) as rows:
        found = read_sessions(rows)
        next(found)
        writer = sqlite3.connect(database, timeout=0)
        writer.execute("UPDATE alert_sessions SET status = 'completed' WHERE session_id = 'running'")
        writer.commit()
        writer.close()
        assert len(list(found)) == 1


def test_what_a_write_ahead_log_holds_is_read_without_touching_it(database: Path) -> None:
    writer = sqlite3.connect(database)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("UPDATE alert_sessions SET final_analysis = 'from the log' WHERE session_id = 'over'")
    writer.commit()
    log = database.with_name("tarsy.db-wal")
    before = log.read_bytes()
    assert the_session(database).final_analysis == "from the log"
    assert log.read_bytes() == before
    writer.close()


def test_a_database_that_is_written_to_all_the_time_is_refused(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Files.copy

    def copy_while_somebody_writes(files: Files, source: Path, target: Path, largest: int | None = None) -> None:
        copy(files, source, target, largest)
        with source.open("ab") as file:
            file.write(b"\0")

    monkeypatch.setattr(Files, "copy", copy_while_somebody_writes)
    with pytest.raises(SourceError, match="being written to"):
        read_dataset(str(database))


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (f"DROP TABLE mcp_communications; CREATE VIEW mcp_communications AS {ENDLESS}", "mcp_communications is a view"),
        (f"DROP TABLE alert_sessions; CREATE VIEW Alert_Sessions AS {ENDLESS}", "alert_sessions is a view"),
        (
            "DROP TABLE mcp_communications; CREATE VIRTUAL TABLE mcp_communications USING fts5(communication_id)",
            "mcp_communications is a view",
        ),
        (
            "ALTER TABLE mcp_communications DROP COLUMN tool_result;"
            "ALTER TABLE mcp_communications ADD COLUMN tool_result AS (printf('%.*c', 900000000, 'x'))",
            r"mcp_communications.tool_result is computed, not stored",
        ),
        ("UPDATE mcp_communications SET tool_result = zeroblob(70000000)", "too big"),
    ],
)
def test_what_a_database_computes_is_not_run(database: Path, change: str, message: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(change)
    with pytest.raises(SourceError, match=message):
        read_dataset(str(database))


def test_a_query_that_takes_too_long_is_interrupted(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.sdk.sqlite.PATIENCE_SECONDS", 0)
    with pytest.raises(SourceError, match="its queries take too long"), open_sqlite(database) as rows:
        rows(f"SELECT count(*) FROM ({ENDLESS})", {})


def test_functions_in_a_databases_schema_are_not_trusted(database: Path) -> None:
    with open_sqlite(database) as rows:
        assert rows("PRAGMA trusted_schema", {}) == [{"trusted_schema": 0}]
        assert rows("PRAGMA query_only", {}) == [{"query_only": 1}]


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to look like one" * 10])
def test_what_is_no_tarsy_database_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read as a TARSy database") as refused:
        read_dataset(str(path))
    assert "\n" not in str(refused.value)


def test_the_same_queries_go_through_sqlalchemy_which_postgres_is_read_with(database: Path) -> None:
    with open_url(f"sqlite:///{database}") as rows:
        found = dict(read_sessions(rows))
    assert found["over"] == the_session(database)


@pytest.mark.real_data
def test_a_real_database_gives_the_same_sessions_as_the_bodies_of_its_api(real_data: Path) -> None:
    databases = read_dataset(str(real_data / "tarsy" / "py_e2e_db")).samples
    bodies = read_dataset(str(real_data / "tarsy" / "py_sessions")).samples
    assert len(databases) == 5
    assert {sample.sample_id: sample.input for sample in databases} == {s.sample_id: s.input for s in bodies}
