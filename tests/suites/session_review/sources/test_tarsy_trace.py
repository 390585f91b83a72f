"""Folders of trace files become sessions: every call by stage and agent, and a broken one is left out alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from suites.session_review.session import load
from suites.session_review.session_text import fit
from suites.session_review.sources.read import read_dataset

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
