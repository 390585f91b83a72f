"""Generic sessions: any agent's messages and its alert."""

import json
from typing import Any

import pytest

from evalake.suites.session_review.session import AgentMessage, Event, Tool, ToolCall
from evalake.suites.session_review.sources.generic import RefusedError, read_generic
from evalake.suites.session_review.sources.read import read_body


def body(*messages: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"session_id": "g-1", "alert": "disk full", "messages": list(messages), **changes}


RESULT_OF_1 = {"role": "tool", "tool_call_id": "1", "content": "r1"}
BLOCK = {"type": "tool_result", "tool_use_id": "1", "content": "r1"}
USE: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a", "input": {}}]}


def calls(*ids: Any) -> dict[str, Any]:
    made = [{"id": given, "name": name, "arguments": {}} for given, name in zip(ids, "abc", strict=False)]
    return {"role": "assistant", "content": "I look.", "tool_calls": made}


def as_text(found: dict[str, Any]) -> dict[str, Any]:
    return {key: json.dumps(value) if key == "tool_calls" else value for key, value in found.items()}


def test_messages_become_what_the_agent_said_and_called() -> None:
    session = read_generic(
        body(
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "why?"},
            {
                "role": "assistant",
                "content": "I look.",
                "thinking": "hm",
                "at": "2026-03-01T10:00:00Z",
                "tool_calls": [
                    {"id": "1", "name": "df", "server": "node", "arguments": {"path": "/"}},
                    {"id": "2", "name": "search", "arguments": "disk"},
                ],
            },
            {"role": "tool", "tool_call_id": "2", "content": None, "error": "denied"},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "99 %"}]},
            {"role": "event", "content": "paused"},
            {"role": "assistant", "content": "It was the disk.", "at": "2026-03-01T10:00:02Z"},
            agent="a",
        )
    )
    at = 1_772_359_200_000_000
    assert list(session.interactions) == [
        AgentMessage(text="I look.", thinking="hm", at_us=at),
        ToolCall("df", server="node", arguments='{"path": "/"}', result="99 %", at_us=at),
        ToolCall("search", arguments="disk", error="denied", at_us=at),
        Event("paused"),
        AgentMessage(text="It was the disk.", at_us=at + 2_000_000),
    ]
    assert session.final_analysis == "It was the disk."
    assert (session.started_at_us, session.completed_at_us) == (at, at + 2_000_000)
    assert (session.status, session.agent, session.alert) == ("completed", "a", "disk full")


def test_chat_completions_are_read_as_they_come() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "df", "arguments": '{"path": "/"}'}}
    tool = {"type": "function", "function": {"name": "df", "description": "free space"}}
    session = read_generic(
        body(
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "99 %"},
            tools=[tool],
        )
    )
    assert list(session.tool_calls) == [ToolCall("df", arguments='{"path": "/"}', result="99 %")]
    assert session.stages[0].tools == (Tool("df", None, "free space"),)


def test_an_answer_without_a_call_shows_that_there_was_one() -> None:
    session = read_generic(body({"role": "tool", "name": "df", "content": "99 %"}))
    assert list(session.tool_calls) == [ToolCall("df", result="99 %")]


def test_an_answer_without_an_id_is_not_replaced_by_a_later_one() -> None:
    calls = [{"id": "1", "name": "df"}, {"id": "2", "name": "du"}]
    answers = [{"content": "99 %"}, {"tool_call_id": "1", "content": "late"}, {"content": "all of it"}]
    tool = [{"role": "tool", **answer} for answer in answers]
    session = read_generic(body({"role": "assistant", "tool_calls": calls}, *tool))
    assert [(call.tool, call.result) for call in session.tool_calls] == [
        ("df", "99 %"),
        ("du", "all of it"),
        ("unknown", "late"),
    ]


def test_an_alert_may_have_parts_and_a_given_conclusion_wins() -> None:
    session = read_generic(body({"role": "assistant", "content": "hm"}, alert={"a": 1}, final_analysis="the disk"))
    assert json.loads(session.alert) == {"a": 1}
    assert session.final_analysis == "the disk"


@pytest.mark.parametrize(
    "changes", [{"messages": None}, {"messages": "text"}, {"session_id": None}, {"status": "running"}, {"status": 7}]
)
def test_what_is_no_session_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        read_generic(body(**changes))
    with pytest.raises(RefusedError):
        read_generic({"session_id": "x", "messages": []})


def test_many_calls_without_answers_are_read_in_linear_time() -> None:
    calls = [{"role": "assistant", "tool_calls": [{"id": str(n), "name": "df"}]} for n in range(20_000)]
    answers = [{"role": "tool", "tool_call_id": str(n), "content": str(n)} for n in reversed(range(20_000))]
    session = read_generic(body(*calls, *answers))
    assert [call.result for call in session.tool_calls] == [str(n) for n in range(20_000)]


def test_content_blocks_pair_a_call_with_its_result() -> None:
    asked = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "u1", "name": "df", "input": {"path": "/"}},
        {"type": "tool_use", "id": "u2", "name": "du", "input": {}},
    ]
    answered = [
        {"type": "tool_result", "tool_use_id": "u2", "content": "8 G", "is_error": False},
        {"type": "tool_result", "tool_use_id": "u1", "content": [{"type": "text", "text": "99 %"}], "is_error": True},
        {"type": "text", "text": "go on"},
    ]
    session = read_generic(body({"role": "assistant", "content": asked}, {"role": "user", "content": answered}))
    assert list(session.interactions) == [
        AgentMessage(text="I look.", thinking="hm"),
        ToolCall("df", arguments='{"path": "/"}', result="99 %", error="the tool reported an error"),
        ToolCall("du", result="8 G"),
    ]


@pytest.mark.parametrize(
    ("messages", "results"),
    [
        ([RESULT_OF_1, calls("1")], {"a": "r1"}),  # a result before its call
        ([calls("1", "1"), RESULT_OF_1, {**RESULT_OF_1, "content": "r2"}], {"a": "r1", "b": "r2"}),
        ([calls(1, 2), {**RESULT_OF_1, "tool_call_id": 2, "content": "r2"}, RESULT_OF_1], {"a": "r1", "b": "r2"}),
        ([json.loads(json.dumps(calls("1")), object_hook=as_text), RESULT_OF_1], {"a": "r1"}),
        ([USE, {"role": "tool", "tool_use_id": "1", "content": ""}], {"a": ""}),
        ([USE, {"role": "tool", "content": [BLOCK]}], {"a": "r1"}),
        ([{**USE, "content": [*USE["content"], BLOCK]}], {"a": "r1"}),
        ([{**USE, "content": json.dumps(USE["content"])}, {"role": "user", "content": [BLOCK]}], {"a": "r1"}),
        ([{**USE, "content": [{**USE["content"][0], "type": "mcp_tool_use"}]}, RESULT_OF_1], {"a": "r1"}),
    ],
)
def test_a_result_finds_its_call(messages: list[Any], results: dict[str, str]) -> None:
    called = [each for each in read_body(body(*messages)).interactions if isinstance(each, ToolCall)]
    assert {call.tool: call.result for call in called} == results
