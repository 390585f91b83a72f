"""A folder of TARSy's trace files as a session: `session.json`, `trace_list.json`, and `trace_interactions/NN_*.json`.

Later versions of TARSy export a session so: the detail without its calls, the list of calls by stage and agent, and one
file a call, numbered in time order. They are put together in the form of a session detail.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.files import Files
from suites.base.sources import NOT_JSON
from suites.session_review.session import Session
from suites.session_review.sources.material import (
    NO_SESSION,
    RefusedError,
    decoded,
    mapping,
    objects,
    require_flat,
    text,
)
from suites.session_review.sources.tarsy import read_detail

LIST, DETAIL, CALLS = "trace_list.json", "session.json", "trace_interactions"


def is_trace(folder: Path) -> bool:
    """Tell whether the folder holds a traced session."""
    return (folder / LIST).is_file()


def read_trace(folder: Path, files: Files) -> Session:
    """Read the session in a folder of trace files.

    Raises:
        RefusedError: A part is missing (a trace of the scoring alone is no session), or is no JSON.
        FileRefusedError: A part may not be read.
    """
    if not (folder / DETAIL).is_file():
        raise RefusedError(NO_SESSION)
    detail = mapping(_json(folder / DETAIL, files))
    calls = {}
    for file in sorted((folder / CALLS).glob("*.json")):
        call = mapping(_json(file, files))
        calls[text(mapping(call.get("meta")).get("id"))] = _event(call)
    traced = {text(each.get("stage_name")): each for each in objects(detail.get("stages"))}
    stages = [
        _stage(stage, number, mapping(traced.get(text(stage.get("stage_name")))), calls)
        for number, stage in enumerate(objects(mapping(_json(folder / LIST, files)).get("stages")))
    ]
    body = {"session_id": detail.get("id"), "final_analysis_summary": detail.get("executive_summary"), **detail}
    return read_detail({**body, "stages": stages, "started_at_us": None, "completed_at_us": None})


def _stage(
    stage: Mapping[str, Any], number: int, detail: Mapping[str, Any], calls: Mapping[Any, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Build a stage in the form of a session detail: of one agent, or with children where there are several."""
    known = {text(each.get("agent_name")): each for each in objects(detail.get("executions"))}
    agents = [
        {
            "stage_name": f"{stage.get('stage_name')} - {execution.get('agent_name')}",
            "agent": execution.get("agent_name"),
            "status": mapping(known.get(text(execution.get("agent_name")))).get("status"),
            "error_message": mapping(known.get(text(execution.get("agent_name")))).get("error_message"),
            "parallel_index": position,
            "chronological_interactions": _calls_of(execution, calls),
        }
        for position, execution in enumerate(objects(stage.get("executions")))
    ]
    named = {name: stage.get(name) for name in ("stage_type", "stage_name")}
    whole = {**named, "stage_index": number, "status": detail.get("status")}
    if len(agents) == 1:
        return {**agents[0], **whole}
    return {**whole, "agent": "parallel", "parallel_type": detail.get("parallel_type"), "parallel_executions": agents}


def _calls_of(execution: Mapping[str, Any], calls: Mapping[Any, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the calls of one agent in the order of their files, which is that of time."""
    lists = ("llm_interactions", "mcp_interactions")
    own = {text(each.get("id")) for name in lists for each in objects(execution.get(name))}
    return [event for given, event in calls.items() if given in own]


def _event(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert one file to a recorded call of a session detail."""
    meta, sections = mapping(call.get("meta")), mapping(call.get("sections"))
    common = {"error_message": meta.get("error_message"), "server_name": meta.get("server_name")}
    if "server_name" not in meta:
        exchange = {**common, "interaction_type": meta.get("interaction_type"), "conversation": call}
        return {"type": "llm", "details": {**exchange, "thinking_content": _thought(meta)}}
    server = text(meta.get("server_name")) or "unknown"
    details = {
        **common,
        "communication_type": meta.get("interaction_type"),
        "tool_name": meta.get("tool_name"),
        "tool_arguments": decoded(sections.get("TOOL_ARGUMENTS")) or {},
        "tool_result": decoded(sections.get("TOOL_RESULT")),
        "available_tools": {server: decoded(sections.get("AVAILABLE_TOOLS"))},
    }
    return {"type": "mcp", "details": details}


def _thought(meta: Mapping[str, Any]) -> str | None:
    """Read what the model thought, and what its provider searched the web for on its behalf."""
    thoughts = [text(meta.get("thinking_content"))]
    thoughts += _searches(mapping(meta.get("response_metadata")))
    return "\n".join(thought for thought in thoughts if thought) or None


def _searches(metadata: Mapping[str, Any]) -> Iterator[str]:
    for grounding in objects(metadata.get("groundings")):
        sources = ", ".join(str(source.get("uri")) for source in objects(grounding.get("sources")))
        yield f"(web search for {text(grounding.get('queries'))}, which gave {sources or 'nothing'})"


def _json(file: Path, files: Files) -> Any:
    try:
        value = json.loads(files.read(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(NOT_JSON) from error
    require_flat(value)
    return value
