"""TARSy's bodies become sessions: everything that the agents did, in order, and nothing that others did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalake.suites.session_review.session import AgentMessage, Event, Session, ToolCall, dump, fit
from evalake.suites.session_review.sources.tarsy import RESUMED, read_detail, read_final_analysis
from tests.cases import cases_beside
from tests.unit.suites.session_review.support import START, called, detail, listed, said, stage

NO_LIMIT = 10**9
FENCE = "f0" * 16


def texts(session: Session) -> list[str]:
    return [each.text or "" for each in session.interactions if isinstance(each, AgentMessage)]


def test_interactions_come_in_time_order_whatever_list_they_are_in() -> None:
    early, late = said(10, ("assistant", "first")), said(30, ("assistant", "third"))
    body = detail(
        {**stage("a"), "llm_interactions": [late, early], "mcp_communications": [called(20, "search", {}, "x")]}
    )
    assert [each.kind for each in read_detail(body).interactions] == ["said", "tool", "said"]
    assert texts(read_detail(body)) == ["first", "third"]


def test_an_interaction_without_time_stays_behind_what_stood_before_it() -> None:
    timeless = {**said(0, ("assistant", "second")), "timestamp_us": None, "event_id": "timeless"}
    lists = [said(30, ("assistant", "third")), said(10, ("assistant", "first")), timeless]
    assert texts(read_detail(detail(stage("a", lists)))) == ["first", "second", "third"]
    untimed = [timeless, {**timeless, "event_id": "another"}]
    (only,) = read_detail(detail(stage("a", untimed, paused_at_us=START))).stages
    assert [each.kind for each in only.interactions] == ["said", "said", "event"]


def test_an_interaction_that_stands_in_two_lists_is_read_once() -> None:
    call = called(20, "search", {}, "x")
    body = detail({**stage("a", [call]), "mcp_communications": [call]})
    assert len(list(read_detail(body).tool_calls)) == 1


def test_parallel_stages_are_read_through_their_children_in_their_order() -> None:
    children = [
        stage("b", [said(5, ("assistant", "from b"))], parallel_index=2),
        stage("a", [said(9, ("assistant", "from a"))], parallel_index=1),
    ]
    session = read_detail(detail(stage("both", parallel_type="multi_agent", parallel_executions=children)))
    (parent,) = session.stages
    assert parent.interactions == ()
    assert parent.parallel == "multi_agent"
    assert texts(session) == ["from a", "from b"]


def test_stages_are_ordered_by_their_start_and_those_that_never_started_come_last() -> None:
    stages = [
        stage("never", stage_index=1, started_at_us=None),
        stage("second", stage_index=0, started_at_us=START + 9),
        stage("first", stage_index=3, started_at_us=START + 1),
    ]
    assert [each.name for each in read_detail(detail(*stages)).stages] == ["first", "second", "never"]


@pytest.mark.parametrize(
    "left_out",
    [
        {"chat_id": "c-1"},
        {"stage_type": "chat"},
        {"stage_type": "scoring"},
        {"stage_type": "exec_summary"},
        {"agent": "ScoringAgent"},
    ],
)
def test_chats_and_scorings_are_no_part_of_the_session(left_out: dict[str, str]) -> None:
    other = stage("other", [called(99, "search", {}, "asked later"), said(100, ("assistant", "later"))], **left_out)
    session = read_detail(detail(stage("a", [said(1, ("assistant", "mine"))]), other))
    assert [each.name for each in session.stages] == ["a"]
    assert texts(session) == ["mine"]


def test_a_judge_recorded_outside_any_stage_is_not_taken_for_the_agent_but_a_tool_call_there_is_kept() -> None:
    loose = [
        said(200, ("user", "score this"), ("assistant", "67"), purpose="investigation"),
        said(201, ("assistant", "missing tools"), purpose="scoring"),
        called(50, "search", {"q": 1}, "kept"),
    ]
    session = read_detail(detail(stage("a", [said(1, ("assistant", "mine"))]), session_level_interactions=loose))
    assert texts(session) == ["mine"]
    assert [call.result for call in session.tool_calls] == ["kept"]


def test_a_judge_recorded_within_a_stage_is_known_by_its_word() -> None:
    body = detail(stage("a", [said(1, ("assistant", "mine")), said(2, ("assistant", "67"), purpose="scoring")]))
    assert texts(read_detail(body)) == ["mine"]


def test_what_a_model_said_is_the_last_message_if_it_is_its_own() -> None:
    answered = said(1, ("system", "be good"), ("user", "why?"), ("assistant", "because"), purpose="forced_conclusion")
    only_thought = said(2, ("system", "be good"), ("user", "why?"), thinking_content="hm")
    nothing = said(3, ("system", "be good"), ("user", "why?"))
    one, two = read_detail(detail(stage("a", [answered, only_thought, nothing]))).interactions
    assert one == AgentMessage(text="because", purpose="forced_conclusion", at_us=START + 1)
    assert two == AgentMessage(thinking="hm", at_us=START + 2)


def test_tool_calls_keep_arguments_results_and_errors() -> None:
    body = detail(
        stage(
            "a",
            [
                called(1, "search", {"q": "ö"}, {"result": "line 1\nline 2"}),
                called(2, "search", {}, {"rows": [1]}),
                called(3, "search", None, None, success=False, error_message="no access"),
                called(4, "search", {}, {"content": "broken", "is_error": True}),
                called(5, "search", {}, None, success=False),
            ],
        )
    )
    found = [(call.arguments, call.result, call.error) for call in read_detail(body).tool_calls]
    assert found == [
        ('{"q": "ö"}', "line 1\nline 2", None),
        ("{}", '{"rows": [1]}', None),
        ("{}", None, "no access"),
        ("{}", "broken", "the tool reported an error"),
        ("{}", None, "no reason given"),
    ]


def test_a_model_call_that_failed_shows_its_error() -> None:
    body = detail(stage("a", [said(1, error_message="quota", thinking_content=None)]))
    assert [each.error for each in read_detail(body).interactions if isinstance(each, AgentMessage)] == ["quota"]


def test_tools_are_known_from_their_listing_and_a_second_listing_in_between_means_a_pause() -> None:
    events = [listed(1, "search", "read"), said(2, ("assistant", "x")), listed(3, "search", "read"), listed(4, "read")]
    (only,) = read_detail(detail(stage("a", events))).stages
    assert [(tool.full_name, tool.description) for tool in only.tools] == [
        ("logs.search", "does search"),
        ("logs.read", "does read"),
    ]
    assert [each for each in only.interactions if isinstance(each, Event)] == [Event(RESUMED, at_us=START + 3)]


def test_a_listing_that_failed_is_an_event() -> None:
    body = detail(stage("a", [listed(1, success=False, error_message="server is down")]))
    (only,) = read_detail(body).interactions
    assert isinstance(only, Event)
    assert "server is down" in only.text


def test_the_runbook_is_what_stands_between_its_marks_in_the_first_question() -> None:
    told = "Look.\n<!-- RUNBOOK START -->\n# Disk\nfree it\n<!-- RUNBOOK END -->\nThanks."
    body = detail(stage("a", [said(1, ("user", told), ("assistant", "ok"))]), runbook_url="https://example.org/r")
    assert read_detail(body).runbook == "# Disk\nfree it"
    assert read_detail(detail(stage("a"), runbook_url="https://example.org/r")).runbook == "https://example.org/r"


def test_a_final_analysis_body_gives_the_last_conversation_with_the_calls_told_in_it() -> None:
    session = read_final_analysis(cases_beside(__file__, "final_analysis.json"))
    assert (session.agent, session.alert_type) == ("chain-a", "Disk")
    assert [each.kind for each in session.interactions] == ["event", "said", "tool", "tool", "said"]
    assert list(session.tool_calls) == [
        ToolCall("df", server="node", arguments='{"path": "/"}', result='{"used": "99 %"}'),
        ToolCall("search", server="logs", result="nothing"),
    ]
    assert "sda is full" in fit(session, NO_LIMIT).text
    assert "chat" not in dump(session)


# What follows counts in the exports themselves, without the code under test.


def exported_calls(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Tool calls of a session detail outside chats."""
    for each in body["stages"]:
        if each["chat_id"] is None:
            for worker in (each, *(each["parallel_executions"] or [])):
                for interaction in worker["mcp_communications"]:
                    if interaction["details"]["communication_type"] == "tool_call":
                        yield interaction["details"]


def said_in_export(body: dict[str, Any]) -> Iterator[str]:
    for each in body["stages"]:
        if each["chat_id"] is None:
            for worker in (each, *(each["parallel_executions"] or [])):
                for interaction in worker["llm_interactions"]:
                    messages = (interaction["details"]["conversation"] or {"messages": []})["messages"]
                    if messages and messages[-1]["role"] == "assistant":
                        yield messages[-1]["content"]
                    if interaction["details"]["thinking_content"]:
                        yield interaction["details"]["thinking_content"]


@pytest.mark.real_data
def test_every_real_session_detail_becomes_a_conversation_with_every_call_and_result(real_data: Path) -> None:
    files = sorted(real_data.glob("tarsy/py_sessions/*/session_detail.json"))
    assert len(files) == 5
    total = 0
    for file in files:
        body = json.loads(file.read_text(encoding="utf-8"))
        text = fit(read_detail(body), NO_LIMIT, FENCE).text
        calls = list(exported_calls(body))
        total += len(calls)
        assert text.count(" TOOL CALL ") == text.count(" RESULT [") == len(calls)
        position = 0
        for call in calls if "parallel" not in body["chain_id"] else []:
            heading = f"TOOL CALL {call['server_name']}.{call['tool_name']} ["
            position = text.index(heading, position) + 1
        for call in calls:
            assert f"TOOL CALL {call['server_name']}.{call['tool_name']} [" in text
            assert f"]\n{json.dumps(call['tool_arguments'])}\n" in text
            assert f" RESULT [{FENCE}]\n{call['tool_result']['result']}\n" in text
        for spoken in said_in_export(body):
            assert spoken in text
    assert total == 14
