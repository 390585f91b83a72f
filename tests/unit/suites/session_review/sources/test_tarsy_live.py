"""Today's TARSy, live: its API and its PostgreSQL give sessions and labels, and a poll reads what is new."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from evalake.core.errors import SourceError
from evalake.suites.session_review.session import fit, load
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.sources.tarsy_live import TOKEN_VARIABLE, Poll
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


AT = "2026-05-04T08:00:{:02}Z"


@pytest.mark.e2e
def test_a_database_of_today_gives_what_its_sub_agents_gathered(
    postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    new_database(postgresql, "today")
    address = postgresql.replace("/postgres", "/today")
    engine = create_engine(with_password(address))
    with engine.begin() as connection:
        for table, columns in TABLES.items():
            connection.execute(text(f"CREATE TABLE {table} ({columns})"))
        for table, row in ROWS:
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


# Their columns as the migrations have them, those that tell something here
_OF = "session_id VARCHAR, stage_id VARCHAR, execution_id VARCHAR, created_at TIMESTAMPTZ"
TABLES = {
    "alert_sessions": "session_id VARCHAR PRIMARY KEY, alert_data TEXT, status VARCHAR, created_at TIMESTAMPTZ, "
    "started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ, final_analysis TEXT, chain_id VARCHAR, deleted_at TIMESTAMPTZ, "
    "quality_rating VARCHAR, assignee VARCHAR, reviewed_at TIMESTAMPTZ",
    "stages": "stage_id VARCHAR, session_id VARCHAR, stage_name VARCHAR, stage_index BIGINT, stage_type VARCHAR",
    "agent_executions": "execution_id VARCHAR, agent_name VARCHAR, agent_index BIGINT, session_id VARCHAR, "
    "stage_id VARCHAR, status VARCHAR, llm_provider VARCHAR, original_llm_provider VARCHAR, "
    "parent_execution_id VARCHAR",
    "messages": f"message_id VARCHAR, sequence_number BIGINT, role VARCHAR, content TEXT, tool_calls JSONB, {_OF}",
    "llm_interactions": "interaction_id VARCHAR, interaction_type VARCHAR, llm_request JSONB, llm_response JSONB, "
    f"last_message_id VARCHAR, {_OF}",
    "mcp_interactions": "interaction_id VARCHAR, interaction_type VARCHAR, server_name VARCHAR, tool_name VARCHAR, "
    f"tool_arguments JSONB, tool_result JSONB, {_OF}",
    "timeline_events": f"event_id VARCHAR, sequence_number BIGINT, event_type VARCHAR, content TEXT, {_OF}",
    "session_scores": "score_id VARCHAR, session_id VARCHAR, total_score BIGINT, status VARCHAR, "
    "started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ",
}


def _at(second: int, agent: str = "one", stage: str = "look", **row: Any) -> dict[str, Any]:
    return {"session_id": "s", "stage_id": stage, "execution_id": agent, "created_at": AT.format(second), **row}


def _said(number: int, role: str, content: str, agent: str = "one", **row: Any) -> tuple[str, dict[str, Any]]:
    given: dict[str, Any] = {
        "message_id": f"{agent}{number}",
        "sequence_number": number,
        "role": role,
        "content": content,
    }
    return "messages", _at(number, agent, **given, **row)


def _asked(given: str, second: int, last: str | None, count: int, agent: str = "one", **row: Any) -> tuple[str, Any]:
    about = {"interaction_type": "iteration", "llm_request": {"messages_count": count}, "llm_response": {}, **row}
    return "llm_interactions", _at(second, agent, interaction_id=given, last_message_id=last, **about)


def _called(given: str, second: int, server: str, tool: str, result: str, agent: str) -> tuple[str, Any]:
    about: dict[str, Any] = {
        "interaction_type": "tool_call",
        "server_name": server,
        "tool_name": tool,
        "tool_arguments": {},
    }
    return "mcp_interactions", _at(second, agent, interaction_id=given, tool_result={"content": result}, **about)


_SENDS = [{"id": "k", "name": "dispatch_agent", "arguments": "{}"}]
_AGENT = {"agent_index": 1, "session_id": "s", "stage_id": "look", "status": "completed"}
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("alert_sessions", {"session_id": "s", "alert_data": "disk full", "status": "timed_out", "chain_id": "c",
                        "created_at": AT.format(0), "completed_at": AT.format(40), "quality_rating": "inaccurate",
                        "assignee": "ann", "reviewed_at": AT.format(50)}),
    ("alert_sessions", {"session_id": "gone", "status": "completed", "created_at": AT.format(0),
                        "deleted_at": AT.format(9)}),
    ("stages", {"stage_id": "look", "session_id": "s", "stage_name": "look", "stage_index": 0,
                "stage_type": "investigation"}),
    ("stages", {"stage_id": "score", "session_id": "s", "stage_name": "Scoring", "stage_index": 1,
                "stage_type": "scoring"}),
    ("agent_executions", {**_AGENT, "execution_id": "one", "agent_name": "Orchestrator", "llm_provider": "claude",
                          "original_llm_provider": "gemini"}),
    ("agent_executions", {**_AGENT, "execution_id": "two", "agent_name": "Logs", "parent_execution_id": "one"}),
    _said(1, "user", "disk full"), _said(2, "assistant", "I send one.", tool_calls=_SENDS),
    _said(3, "user", "[Logs] found it"), _said(4, "assistant", "It is OOM."),
    _said(1, "user", "search", "two"), _said(2, "assistant", "Found OOM.", "two"),
    _asked("l1", 2, "one2", 1), _asked("l2", 9, "one4", 3, interaction_type="forced_conclusion"),
    _asked("l3", 6, "two2", 1, "two"),
    _asked("l4", 41, None, 1, stage="score", llm_response={"text": "a judge's words"}),
    _called("c1", 3, "orchestrator", "dispatch_agent", "accepted", "one"),
    _called("c2", 5, "logs", "search", "OOM killed", "two"),
    ("timeline_events", _at(1, event_id="t", sequence_number=1, event_type="memory_injected",
                            content="- disks fill up")),
    ("session_scores", {"score_id": "x", "session_id": "s", "total_score": 71, "status": "completed",
                        "started_at": AT.format(41), "completed_at": AT.format(45)}),
]  # fmt: skip
