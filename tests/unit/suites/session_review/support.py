"""Sessions, exports and judges for the tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalake.models.request import Failure, Reply, Request
from evalake.sdk import Exchange, Item, Sample
from evalake.suites.session_review.prompts import converse
from evalake.suites.session_review.session import Interaction, Session, Stage, Tool
from evalake.suites.session_review.sources.read import sample_of

START = 1_773_000_000_000_000  # microseconds


def session(*interactions: Interaction, **changes: Any) -> Session:
    """A completed session of one stage, with one tool available, unless `changes` say otherwise."""
    stage = Stage("investigation", "agent-a", "completed", interactions, (Tool("search", "logs", "finds lines"),))
    given = {"final_analysis": "It was the disk.", "alert": "disk full", "alert_type": "Disk", **changes}
    return Session("s-1", "completed", "chain-a", stages=(stage,), **given)


def sample(of: Session | None = None) -> Sample:
    return sample_of(of or session(), "tests")


def item(of: Session | None = None, **changes: Any) -> Item:
    return Item(**{"sample": sample(of), "model": "agents", "judge": "judge-a", **changes})


def talk(
    asked: Item, *answers: str | Failure | Reply | None, options: Mapping[str, Any] | None = None
) -> tuple[list[Request], list[Exchange]]:
    """Let the judge give these answers, for as long as the conversation goes on."""
    requests: list[Request] = []
    answered: list[Exchange] = []
    for answer in answers:
        request = converse(asked, answered, options or {})
        if request is None:
            break
        requests.append(request)
        outcome = answer if isinstance(answer, Failure | Reply) else Reply(answer, input_tokens=10, output_tokens=5)
        answered.append(Exchange(request.prompt_hash, outcome))
    return requests, answered


def event(kind: str, at: int, **details: Any) -> dict[str, Any]:
    """One recorded call of a session detail, `at` microseconds after the start."""
    return {"event_id": f"{kind}-{at}", "timestamp_us": START + at, "type": kind, "details": details}


def said(at: int, *messages: tuple[str, str], purpose: str = "investigation", **details: Any) -> dict[str, Any]:
    spoken = [{"role": role, "content": content} for role, content in messages]
    return event("llm", at, interaction_type=purpose, conversation={"messages": spoken}, success=True, **details)


def called(at: int, tool: str, arguments: Any, result: Any, **details: Any) -> dict[str, Any]:
    given = {"communication_type": "tool_call", "server_name": "logs", "tool_name": tool, "success": True, **details}
    return event("mcp", at, tool_arguments=arguments, tool_result=result, **given)


def listed(at: int, *tools: str, **details: Any) -> dict[str, Any]:
    available = {"logs": [{"name": tool, "description": f"does {tool}"} for tool in tools]}
    given = {"communication_type": "tool_list", "server_name": "logs", "success": True, **details}
    return event("mcp", at, available_tools=available, **given)


def stage(name: str, events: Sequence[Mapping[str, Any]] = (), **changes: Any) -> dict[str, Any]:
    given = {"stage_name": name, "agent": f"{name}-agent", "status": "completed", "stage_index": 0, "chat_id": None}
    return {**given, "chronological_interactions": list(events), **changes}


def detail(*stages: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A session-detail body."""
    given = {"session_id": "s-1", "status": "completed", "alert_type": "Disk", "agent_type": "chain:chain-a"}
    body = {**given, "alert_data": {"title": "disk full"}, "final_analysis": "It was the disk."}
    return {**body, "session_level_interactions": [], "stages": list(stages), **changes}
