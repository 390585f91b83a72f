"""Folders of trace files become sessions: every call by stage and agent, and a broken one is left out alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.files import Files
from suites.session_review.session import AgentMessage, ToolCall, load
from suites.session_review.session_text import fit
from suites.session_review.sources.material import RefusedError
from suites.session_review.sources.read import read_dataset
from suites.session_review.sources.tarsy_trace import is_trace, read_trace

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
    text = fit(session, NO_LIMIT).text
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
        {"agent_name": "a", "llm_interactions": [{"id": "2"}], "mcp_interactions": [{"id": "1"}]},
        {"agent_name": "b", "llm_interactions": [{"id": "3"}]},
    ]
    tool = {
        "meta": {"id": "1", "interaction_type": "tool_call", "server_name": "node", "tool_name": "df"},
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
    assert is_trace(tmp_path)
    session = read_trace(tmp_path, Files(tmp_path, 2**20))
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
    assert not is_trace(tmp_path)
    write_trace(tmp_path)
    (tmp_path / "session.json").unlink()
    with pytest.raises(RefusedError, match="not a session"):
        read_trace(tmp_path, Files(tmp_path, 2**20))
