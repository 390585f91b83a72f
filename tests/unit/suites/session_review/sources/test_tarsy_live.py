"""Today's TARSy, live: its API and its PostgreSQL give sessions and labels, and a poll reads what is new."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from evalake.core.errors import SourceError
from evalake.suites.session_review.session import fit, load
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.sources.tarsy_live import TOKEN_VARIABLE, Poll
from tests.cases import cases_beside
from tests.servers.postgresql import PASSWORD, new_database, with_password
from tests.servers.tarsy_api import TOKEN, TarsyApi


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[TarsyApi]:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    with TarsyApi() as server:
        yield server


def test_sessions_and_labels_are_read_page_by_page(api: TarsyApi) -> None:
    for minute, name in enumerate(("a", "b", "d")):
        api.put(name, minute, latest_score=70 + minute)
    api.put("going", 5, status="in_progress")
    api.put("a", 0, quality_rating="accurate", assignee="ann", investigation_feedback="found it")
    dataset = read_dataset(api.url)
    assert [sample.sample_id for sample in dataset.samples] == ["a", "b", "d"]
    assert [(left.where, left.reason) for left in dataset.skipped] == [("127.0.0.1: going", "session is not over")]
    told = {(each.sample_id, each.annotator, each.question): (each.answer, each.note) for each in dataset.labels}
    assert told["a", "ann", "quality_rating"] == ("accurate", "found it")
    assert told["d", "TARSy", "tarsy_score"] == (72.0, None)


def test_a_poll_reads_what_is_new_and_what_was_not_over(api: TarsyApi) -> None:
    api.put("old", 0)
    api.put("going", 1, status="in_progress")
    api.put("later", 2)
    poll = Poll()
    first = read_dataset(api.url, poll=poll)
    poll.known = {each.sample_id: load(each.input).completed_at_us for each in first.samples}
    api.asked.clear()
    api.put("going", 1)
    second = read_dataset(api.url, may_be_empty=True, poll=poll)
    assert [each.sample_id for each in second.samples] == ["going"]
    assert not [path for path in api.asked if "/old" in path or "/later" in path]


@pytest.mark.parametrize(
    ("url", "token", "told"),
    [
        ("{}", "wrong", f"refuses to be read .HTTP 401.: set {TOKEN_VARIABLE}"),
        ("{}/elsewhere", TOKEN, "TARSy's API answered HTTP 404"),
        ("http://me:hidden@127.0.0.1", TOKEN, f"without a password: set {TOKEN_VARIABLE}"),
        ("http://tarsy.example", TOKEN, "in the open: use https"),
        ("http://127.0.0.1:9", TOKEN, "does not answer"),
    ],
)
def test_what_cannot_be_read_says_why(
    api: TarsyApi, monkeypatch: pytest.MonkeyPatch, url: str, token: str, told: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    with pytest.raises(SourceError, match=told) as refused:
        read_dataset(url.format(api.url))
    assert "hidden" not in str(refused.value)


def test_bodies_saved_under_their_addresses_are_a_session(api: TarsyApi, tmp_path: Path) -> None:
    api.put("s", 0)
    for path, body in api.bodies.items():
        file = tmp_path / f"{path.removeprefix('/api/v1/')}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(body))
    (saved,), (live,) = read_dataset(str(tmp_path)).samples, read_dataset(api.url).samples
    assert saved.input == live.input


TODAY = cases_beside(__file__, "today.json")
"""Tables as the migrations have them, the columns that tell something here; and the rows of a session."""


@pytest.mark.e2e
def test_a_database_of_today_gives_what_its_sub_agents_gathered(
    postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    new_database(postgresql, "today")
    address = postgresql.replace("/postgres", "/today")
    engine = create_engine(with_password(address))
    with engine.begin() as connection:
        for table, columns in TODAY["tables"].items():
            connection.execute(text(f"CREATE TABLE {table} ({columns})"))
        for table, row in TODAY["rows"]:
            values = {name: json.dumps(each) if isinstance(each, dict | list) else each for name, each in row.items()}
            marks = ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"), values)
    engine.dispose()
    dataset = read_dataset(address)
    (sample,) = dataset.samples
    told = fit(load(sample.input), 10**9).text
    in_order = [
        "status: timed_out",
        "memories of past sessions:\n- disks fill up",
        "Provider fallback: gemini → claude",
        "TOOL CALL orchestrator.dispatch_agent",
        "The agent was told:\n[Logs] found it",
        "IS MADE TO CONCLUDE AT ITS LIMIT\nIt is OOM.",
        "agent: Logs",
        "TOOL CALL logs.search",
        "RESULT\nOOM killed",
    ]
    assert re.search(".*".join(map(re.escape, in_order)), told, re.DOTALL), told
    assert "a judge's words" not in told
    assert [(each.question, each.answer) for each in dataset.labels] == [
        ("tarsy_score", 71.0),
        ("quality_rating", "inaccurate"),
    ]
