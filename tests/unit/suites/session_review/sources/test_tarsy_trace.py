"""Folders of trace files become sessions: every call by stage and agent, and a broken one is left out alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.core.files import Files
from evalake.suites.session_review.session import AgentMessage, ToolCall, fit, load
from evalake.suites.session_review.sources.generic import RefusedError
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.sources.tarsy_trace import is_trace, read_bodies, saved_bodies

TRACE_LIST = {"stages": [{"stage_name": "s", "executions": [{"agent_name": "a", "llm_interactions": [{"id": "1"}]}]}]}

TRACED = {"id": "traced", "status": "completed", "alert_data": "disk full", "stages": [{"stage_name": "s"}]}

TRACED_CALL = {"meta": {"id": "1"}, "messages": [{"role": "assistant", "content": "the disk is full"}]}


def write_trace(folder: Path, **files: Any) -> None:
    """A folder of trace files; `files` replace some of them, as text or bytes."""
    whole = {"trace_list": TRACE_LIST, "session": TRACED, "trace_interactions/01_llm": TRACED_CALL} | files
    for name, content in whole.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"session": b"{"}, "not a JSON object"),
        ({"session": b'{"id": "\xff"}'}, "not a JSON object"),
        ({"trace_list": b"[" * 5000}, "not a JSON object"),
        ({"trace_list": TRACE_LIST | {"more": json.loads("[" * 900 + "]" * 900)}}, "nested too deeply"),
        ({"session": TRACED | {"id": None}}, "session without session_id"),
    ],
)
def test_a_broken_trace_is_left_out_and_the_others_are_read(tmp_path: Path, files: dict[str, Any], reason: str) -> None:
    write_trace(tmp_path / "a-good")
    write_trace(tmp_path / "broken", **files)
    dataset = read_dataset(str(tmp_path))
    assert [sample.sample_id for sample in dataset.samples] == ["traced"]
    assert [(left.where, left.reason) for left in dataset.skipped] == [("broken", reason)]


@pytest.mark.parametrize("name", [[1], {"a": 1}, 7, None])
def test_ids_and_names_of_a_trace_may_be_any_json(tmp_path: Path, name: Any) -> None:
    execution = {"agent_name": name, "llm_interactions": [{"id": name}]}
    write_trace(
        tmp_path,
        trace_list={"stages": [{"stage_name": name, "executions": [execution]}]},
        session=TRACED | {"stages": [{"stage_name": name, "executions": [{"agent_name": name, "status": "failed"}]}]},
        **{"trace_interactions/01_llm": TRACED_CALL | {"meta": {"id": name}}},
    )
    (sample,) = read_dataset(str(tmp_path)).samples
    assert "the disk is full" in sample.input


NO_LIMIT = 10**9


@pytest.mark.real_data
def test_the_real_traces_become_a_conversation_with_every_call_and_result(real_data: Path) -> None:
    folder = real_data / "tarsy" / "go_golden" / "pipeline"
    session = load(read_dataset(str(folder)).samples[0].input)
    text = fit(session, NO_LIMIT, "f0" * 16).text
    calls = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("trace_interactions/*_mcp_*.json"))
        if "ChatAgent" not in file.name and "tool_list" not in file.name
    ]
    assert len(calls) == 7
    assert text.count(" TOOL CALL ") == text.count(" RESULT [") == len(calls)
    for call in calls:
        assert f"TOOL CALL {call['meta']['server_name']}.{call['meta']['tool_name']} [" in text
        assert json.loads(call["sections"]["TOOL_RESULT"])["content"] in text
        for value in json.loads(call["sections"].get("TOOL_ARGUMENTS", "{}")).values():
            assert json.dumps(value) in text
    assert "AT ITS LIMIT" in text
    assert "ChatAgent" not in text
    assert "kubernetes.io/docs" in text  # a web search that the model's provider made


def test_a_trace_is_put_together_by_stage_agent_and_file(tmp_path: Path) -> None:
    """Two agents side by side; each has the calls that the list gives it, in the order of the files."""
    executions = [
        {"agent_name": "a", "llm_interactions": [{"id": "2"}], "mcp_interactions": [{"id": "m1"}]},
        {"agent_name": "b", "llm_interactions": [{"id": "3"}]},
    ]
    tool = {
        "meta": {"id": "m1", "interaction_type": "tool_call", "server_name": "node", "tool_name": "df"},
        "sections": {"TOOL_ARGUMENTS": '{"path": "/"}', "TOOL_RESULT": '{"content": "99 %", "is_error": false}'},
    }
    searched = {"groundings": [{"queries": ["disk"], "sources": [{"uri": "https://example.org"}]}]}
    spoken = {
        "meta": {"id": "2", "thinking_content": "hm", "response_metadata": searched},
        "messages": [{"role": "assistant", "content": "the disk"}],
    }
    write_trace(
        tmp_path,
        trace_list={"stages": [{"stage_name": "s", "executions": executions}]},
        session=TRACED | {"executive_summary": "in short"},
        **{"trace_interactions/01_mcp": tool, "trace_interactions/02_llm": spoken},
        **{"trace_interactions/03_llm": TRACED_CALL | {"meta": {"id": "3"}}},
    )
    assert is_trace(tmp_path, Files(tmp_path, 2**20))
    session = read_bodies(saved_bodies(tmp_path, Files(tmp_path, 2**20)))
    (stage,) = session.stages
    assert (session.session_id, session.summary) == ("traced", "in short")
    assert [child.agent for child in stage.children] == ["a", "b"]
    called, said, other = session.interactions
    assert called == ToolCall("df", server="node", arguments='{"path": "/"}', result="99 %")
    assert isinstance(said, AgentMessage)
    assert (said.text, said.thinking) == ("the disk", 'hm\n(web search for ["disk"], which gave https://example.org)')
    assert isinstance(other, AgentMessage)
    assert other.text == "the disk is full"


def test_a_folder_without_a_session_is_none(tmp_path: Path) -> None:
    assert not is_trace(tmp_path, Files(tmp_path, 2**20))
    write_trace(tmp_path)
    (tmp_path / "session.json").unlink()
    with pytest.raises(RefusedError, match="not a session"):
        read_bodies(saved_bodies(tmp_path, Files(tmp_path, 2**20)))


AT = "2026-05-04T08:00:{:02}.25Z"


def go_said(given: str, second: int, *messages: dict[str, Any], **changes: Any) -> dict[str, Any]:
    told = {"id": given, "interaction_type": "iteration", "model_name": "m", "created_at": AT.format(second)}
    return {**told, "llm_request": {}, "llm_response": {}, "conversation": list(messages), **changes}


def go_called(given: str, second: int, tool: str, result: str, **arguments: Any) -> dict[str, Any]:
    named = {"id": given, "interaction_type": "tool_call", "server_name": "node", "tool_name": tool}
    wrapped = {"content": result, "is_error": False}
    return {**named, "created_at": AT.format(second), "tool_arguments": arguments, "tool_result": wrapped}


def asks(text: str, given: str, name: str, arguments: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": [{"id": given, "name": name, "arguments": arguments}]}


TOLD = ({"role": "system", "content": "You are an SRE."}, {"role": "user", "content": "disk full"})
LOOKS = asks("I look.", "k1", "node__df", '{"path":"/"}')
FOUND = {"role": "tool", "tool_call_id": "k1", "tool_name": "node__df", "content": "99 %"}


def write_go(folder: Path, *calls: dict[str, Any], **changes: Any) -> None:
    """A session of the Go API: a lead with one sub-agent beside another agent, then its summary and a chat."""
    ids = [{"id": call["id"]} for call in calls]
    sub_agent: dict[str, Any] = {
        "execution_id": "e-2",
        "agent_name": "sub",
        "llm_interactions": [],
        "mcp_interactions": [],
    }
    lead = {"execution_id": "e-1", "agent_name": "lead", "llm_interactions": ids, "sub_agents": [sub_agent]}
    side: dict[str, Any] = {"execution_id": "e-3", "agent_name": "side", "llm_interactions": []}
    stages = [{"stage_id": "x", "stage_name": "look", "stage_type": "investigation", "executions": [lead, side]}]
    for number, (kind, agent) in enumerate(
        (("exec_summary", "summer"), ("chat", "talker"), ("scoring", "ScoringAgent"))
    ):
        executions = [{"execution_id": f"f-{number}", "agent_name": agent, "llm_interactions": [{"id": kind}]}]
        stages.append({"stage_id": kind, "stage_name": kind, "stage_type": kind, "executions": executions})
    traced = {"stages": stages, "session_interactions": []}
    sub = go_said("sub-1", 4, *TOLD, {"role": "assistant", "content": "Logs fill it."})
    sub_agent["llm_interactions"] = [{"id": "sub-1"}]
    side["llm_interactions"] = [{"id": "side-1"}]
    beside = go_said("side-1", 5, *TOLD, {"role": "assistant", "content": "Nothing here."})
    ends = [
        go_said(kind, 9, *TOLD, {"role": "assistant", "content": f"by {kind}"}, interaction_type=purpose)
        for kind, purpose in (("exec_summary", "executive_summary"), ("chat", "iteration"), ("scoring", "scoring_eval"))
    ]
    detail = {
        **{"id": "go-1", "status": "completed", "alert_data": "disk full", "executive_summary": "full"},
        "started_at": AT.format(0),
        "final_analysis": "It is full.",
        "stages": [
            {"id": "x", "stage_name": "look", "status": "completed", "parallel_type": "multi_agent", "executions": []}
        ],
    }
    files = {f"trace_interactions/{n}": call for n, call in enumerate([*calls, sub, beside, *ends])}
    write_trace(folder, **{"session": detail, "trace_list": traced, **files, **changes})
    (folder / "trace_interactions" / "01_llm.json").unlink()


def test_bodies_of_the_go_api_become_every_call_under_its_agent(tmp_path: Path) -> None:
    ended = {"role": "assistant", "content": "It is full."}
    order = {"role": "user", "content": "[Sub-agent completed] sub"}
    write_go(
        tmp_path / "one",
        go_said("l2", 6, *TOLD, LOOKS, FOUND, order, ended, thinking_content="so"),
        go_called("m1", 2, "df", "99 %", path="/"),
        go_said("l1", 1, *TOLD, LOOKS),
    )
    (sample,) = read_dataset(str(tmp_path)).samples
    session = load(sample.input)
    (stage,) = session.stages
    lead, side = stage.children
    assert (session.session_id, session.started_at_us, stage.parallel) == ("go-1", 1777881600250000, "multi_agent")
    assert [(child.agent, [each.agent for each in child.children]) for child in stage.children] == [
        ("lead", ["sub"]),
        ("side", []),
    ]
    assert [each.kind for each in lead.interactions] == ["said", "tool", "event", "said"]
    assert lead.briefing == "You are an SRE.\n\ndisk full"
    (call,) = session.tool_calls
    assert (call.name, call.arguments, call.result) == ("node.df", '{"path": "/"}', "99 %")
    assert [each.text for each in side.interactions if isinstance(each, AgentMessage)] == ["Nothing here."]
    text = fit(session, NO_LIMIT).text
    assert "Logs fill it." in text
    assert "[Sub-agent completed] sub" in text
    assert [stage.name for stage in session.afterwards or ()] == ["exec_summary", "chat"]
    assert "by chat" in sample.input
    assert "by chat" not in text
    assert "by scoring" not in sample.input


def test_tool_calls_that_only_a_conversation_tells_of_are_read(tmp_path: Path) -> None:
    ended = {"role": "assistant", "content": "It is full."}
    write_go(tmp_path, go_said("l2", 6, *TOLD, LOOKS, FOUND, ended))
    session = load(read_dataset(str(tmp_path)).samples[0].input)
    assert [(call.name, call.result) for call in session.tool_calls] == [("node.df", "99 %")]
    spoken = [each.text for each in session.interactions if isinstance(each, AgentMessage)]
    assert spoken[:2] == ["I look.", "It is full."]


def test_an_order_that_the_model_did_not_answer_is_kept(tmp_path: Path) -> None:
    order = {"role": "user", "content": "conclude now"}
    unanswered = go_said("l2", 6, *TOLD, LOOKS, FOUND, order, error_message="no quota")
    write_go(tmp_path, go_said("l1", 1, *TOLD, LOOKS), unanswered)
    lead = next(load(read_dataset(str(tmp_path)).samples[0].input).agents)
    assert [each.kind for each in lead.interactions] == ["said", "tool", "event", "said"]
    assert "conclude now" in str(lead.interactions[2])


def test_a_call_that_no_agent_has_or_no_file_holds_is_told(tmp_path: Path) -> None:
    calls = (go_said("l1", 1, *TOLD, LOOKS), go_called("m1", 2, "df", "99 %", path="/"))
    write_go(tmp_path / "a", *calls)
    write_go(tmp_path / "b", *calls)
    (tmp_path / "b" / "trace_interactions" / "1.json").unlink()
    write_go(tmp_path / "c", *calls, **{"trace_interactions/orphan": go_called("m9", 3, "du", "8 G")})
    dataset = read_dataset(str(tmp_path))
    assert len(dataset.samples) == 1
    assert [(left.where, left.reason) for left in dataset.skipped] == [
        ("b", "1 of 7 calls of trace_list.json have no file in trace_interactions"),
        ("c", "unread: 1 of 2 tool calls and 1 of 2 tool results"),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"conversation": [*TOLD, LOOKS]}, None),
        ({"conversation": {"messages": [*TOLD, LOOKS]}}, None),
        ({"conversation": json.dumps([*TOLD, LOOKS])}, None),
        ({"llm_request": {"messages": list(TOLD)}, "llm_response": {"text": LOOKS["content"]}}, None),
        ({"llm_response": {"text_length": 7}, "thinking_content": "so"}, "unread: 1 of 6 messages"),
        ({"id": "m1", "conversation": [*TOLD, LOOKS]}, "1 of 8 files of trace_interactions repeat the id of another"),
    ],
)
def test_what_a_body_says_is_read_or_missed(tmp_path: Path, changes: dict[str, Any], reason: str | None) -> None:
    first = {name: value for name, value in go_said("l1", 1).items() if name != "conversation"}
    last = go_said("l2", 6, *TOLD, LOOKS, FOUND, {"role": "assistant", "content": "It is full."})
    write_go(tmp_path, first | changes, go_called("m1", 2, "df", "99 %", path="/"), last)
    dataset = read_dataset(str(tmp_path), may_be_empty=True)
    assert [left.reason for left in dataset.skipped] == ([] if reason is None else [reason])
    for sample in dataset.samples:
        lead = next(load(sample.input).agents)
        assert [each.kind for each in lead.interactions] == ["said", "tool", "said"]


@pytest.mark.real_data
def test_the_cases_of_the_go_api_are_read_whole(real_data: Path) -> None:
    cases = real_data.parent / "cases" / "sessions"
    (sample,) = read_dataset(str(cases / "go_trace")).samples
    session = load(sample.input)
    assert [(call.name, bool(call.result)) for call in session.tool_calls] == [("test-mcp.get_pods", True)]
    assert [stage.agent for stage in session.afterwards or ()] == ["ExecSummaryAgent", "ChatAgent"]
    (sample,) = read_dataset(str(cases / "go_sub_agents")).samples
    found = {stage.agent: [each.kind for each in stage.interactions] for stage in load(sample.input).agents}
    assert found == {"SREOrchestrator": ["said", "tool"], "LogAnalyzer": ["said", "tool"]}
    (sample,) = read_dataset(str(cases / "content_blocks.json")).samples
    assert [(call.tool, call.result) for call in load(sample.input).tool_calls] == [("logs.search", "2847 errors")]
    with pytest.raises(SourceError, match="1 x session without any interaction"):
        read_dataset(str(cases / "go_detail"))
