"""The timeline of a session of today's TARSy (`GET …/timeline`): what befell its agents, and their calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalake.suites.session_review.sources.generic import decoded, mapping, microseconds, objects, text

MEMORIES, FALLBACK = "memory_injected", "provider_fallback"

Told = Mapping[str | None, list[Mapping[str, Any]]]  # events of the timeline by agent


def by_agent(timeline: Iterable[Mapping[str, Any]]) -> Told:
    """Sort the events of a timeline to the agents that they befell, by execution, or by the agent's name."""
    told: dict[str | None, list[Mapping[str, Any]]] = {}
    for event in sorted(timeline, key=lambda each: microseconds(each.get("sequence_number")) or 0):
        told.setdefault(text(event.get("execution_id")) or text(event.get("agent")), []).append(event)
    return told


def befell(told: Sequence[Mapping[str, Any]], detail: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what befell an agent beside its calls: memories that it was given, and fallbacks of its provider."""
    words, kinds = {MEMORIES: "The agent was given memories of past sessions:\n"}, set[Any]()
    for event in told:
        if (kind := event.get("event_type")) in (MEMORIES, FALLBACK):
            kinds.add(kind)
            reason = text(mapping(event.get("metadata")).get("reason"))
            said = f"{words.get(kind, '')}{text(event.get('content')) or ''}{f': {reason}' if reason else ''}"
            yield {"type": "event", "timestamp_us": microseconds(event.get("created_at")), "text": said}
    if FALLBACK not in kinds and (original := text(detail.get("original_llm_provider"))):
        reason = text(detail.get("fallback_reason"))
        said = f"Provider fallback: {original} → {text(detail.get('llm_provider')) or 'another'}"
        at = microseconds(detail.get("started_at"))
        yield {"type": "event", "timestamp_us": at, "text": f"{said}: {reason}" if reason else said}


def listed_by_timeline(detail: Mapping[str, Any], told: Told) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Build the list of calls, and the calls, from a timeline alone: a call ends where the next thought begins."""
    calls: list[Mapping[str, Any]] = []

    def agent(execution: Mapping[str, Any]) -> Mapping[str, Any]:
        given = text(execution.get("execution_id"))
        own = [call for event in told.get(given, ()) if (call := _call_by_timeline(event, f"{given}-{len(calls)}"))]
        made: list[Mapping[str, Any]] = []
        for number, call in enumerate(own):
            said = objects(call.get("conversation"))
            if not (made and said and said == made[-1].get("conversation")):  # an analysis repeats what was said
                made.append({**call, "id": f"{given}-{number}"})
        calls.extend(made)
        sub_agents = [agent(each) for each in objects(execution.get("sub_agents"))]
        return {**execution, "mcp_interactions": [{"id": call["id"]} for call in made], "sub_agents": sub_agents}

    stages = [
        {**stage, "stage_id": stage.get("id"), "executions": [agent(each) for each in objects(stage.get("executions"))]}
        for stage in objects(detail.get("stages"))
    ]
    return {"stages": stages}, calls


def _call_by_timeline(event: Mapping[str, Any], given: str) -> Mapping[str, Any] | None:
    """Convert an event of a timeline to the body of a call; None where it is none."""
    about, kind, content = mapping(event.get("metadata")), event.get("event_type"), event.get("content")
    call = {"id": given, "created_at": event.get("created_at"), "interaction_type": "iteration"}
    match kind:
        case "llm_tool_call":
            names = {name: about.get(name) for name in ("server_name", "tool_name")}
            result = {"content": content, "is_error": about.get("is_error")}
            asked = decoded(about.get("arguments"))
            return {**call, **names, "interaction_type": "tool_call", "tool_arguments": asked, "tool_result": result}
        case "llm_thinking":
            return {**call, "thinking_content": content}
        case "error":
            return {**call, "error_message": content}
        case "llm_response" | "final_analysis" | "mcp_tool_summary":
            purpose = {"mcp_tool_summary": "summarization", "final_analysis": "final_analysis"}.get(
                str(kind), "iteration"
            )
            spoken = [{"role": "assistant", "content": content}]
            return {**call, "interaction_type": about.get("interaction_type") or purpose, "conversation": spoken}
    return None
