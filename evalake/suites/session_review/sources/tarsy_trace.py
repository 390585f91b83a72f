"""The bodies of today's TARSy as a session: from its API, its database, or a folder in which they were saved.

A session is its detail, which has no calls (`GET /sessions/{id}`), the list of its calls by stage and agent (`/trace`),
a body for each call (`/trace/llm/{id}`, `/trace/mcp/{id}`), and its `/timeline`. They are put together in the form of a
session detail. A saved call may also have the form of TARSy's own tests: `meta`, `messages` and `sections`. Each call
repeats the conversation; only its new end belongs to the call; tool calls that it alone tells of are read from it.
Memories given to an agent and fallbacks of its provider are read from the timeline; so are the calls, where no list of
them is there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalake.core.files import Files
from evalake.sdk.json_in_text import decode_once, mapping, objects
from evalake.sdk.sources import reason_of
from evalake.suites.session_review.session import Session
from evalake.suites.session_review.sources import generic, require_whole
from evalake.suites.session_review.sources.generic import RefusedError, decoded, microseconds, text
from evalake.suites.session_review.sources.tarsy import in_time_order, is_left_out, read_afterwards, read_detail

LISTS, DETAIL, CALLS = ("trace_list.json", "trace.json"), "session.json", "trace_interactions"
TIMELINE, SCORE = "timeline.json", "score.json"
MEMORIES, FALLBACK = "memory_injected", "provider_fallback"  # events of a timeline

Told = Mapping[str | None, list[Mapping[str, Any]]]  # events of the timeline by agent


@dataclass(frozen=True)
class Bodies:
    """The bodies of one session; `listed` is None where only its timeline is there."""

    detail: Mapping[str, Any]
    listed: Mapping[str, Any] | None
    calls: Sequence[Mapping[str, Any]] = ()
    timeline: Sequence[Mapping[str, Any]] = ()
    score: Mapping[str, Any] | None = None


def is_trace(folder: Path, files: Files) -> bool:
    """Tell whether the folder holds the saved bodies of one session; `trace.json` alone may be of any other."""
    has_timeline = (folder / TIMELINE).is_file() and (folder / DETAIL).is_file()
    own, common = ((folder / name).is_file() for name in LISTS)
    return has_timeline or own or (common and _detail(folder, files).is_file())


def _detail(folder: Path, files: Files) -> Path:
    beside = folder.with_name(f"{folder.name}.json")  # as addresses have it: sessions/ID and sessions/ID/trace
    return folder / DETAIL if (folder / DETAIL).is_file() or folder == files.root else beside


def saved_bodies(folder: Path, files: Files) -> Bodies:
    """Collect the bodies in a folder and below, from files of calls with any name.

    Raises:
        RefusedError: There is no detail (a trace of the scoring alone is no session), or a file is no JSON.
        FileRefusedError: A file may not be read.
    """
    detail = _detail(folder, files)
    if not detail.is_file():
        raise RefusedError(generic.NO_SESSION)
    lists = [folder / name for name in LISTS if (folder / name).is_file()]
    apart = {detail, *lists, folder / TIMELINE, folder / SCORE}
    others = (file for file in sorted(folder.rglob("*.json")) if file not in apart)
    return Bodies(
        mapping(_json(detail, files)),
        mapping(_json(lists[0], files)) if lists else None,
        [
            call
            for call in (mapping(_json(file, files)) for file in others)
            if "meta" in call or "interaction_type" in call
        ],
        objects(_json(folder / TIMELINE, files)) if (folder / TIMELINE).is_file() else (),
        mapping(_json(folder / SCORE, files)) if (folder / SCORE).is_file() else None,
    )


@generic.refusing()
def read_bodies(bodies: Bodies) -> Session:
    """Put the session together. Raises RefusedError where it is none, is not over, or part of it was not read."""
    told, detail = by_agent(bodies.timeline), bodies.detail
    listed: Mapping[str, Any]
    found: Sequence[Mapping[str, Any]]
    if bodies.listed is None:
        listed, found = listed_by_timeline(detail, told)
    else:
        listed, found = bodies.listed, bodies.calls
    for body in (detail, listed, *found):
        generic.require_flat(body)
    calls = {_id(call): _event(call) for call in found}
    stages = _stages(detail, objects(listed.get("stages")), calls, told)
    if repeated := sum(_id(call) is not None for call in found) - len(calls.keys() - {None}):
        raise RefusedError(f"{repeated} of {len(found)} files of {CALLS} repeat the id of another")
    of_session = {"id": None, "session_interactions": listed.get("session_interactions")}
    if loose := _calls_of(of_session, calls):
        summed = {"stage_type": "exec_summary", "stage_name": "outside any stage"}
        stages.append({**summed, "status": "completed", "chronological_interactions": loose})
    session = _session(detail, stages)
    _require_files(objects(listed.get("stages")), calls)
    require_whole(_told(stages, found), session)
    return session


def read_api_detail(body: Mapping[str, Any]) -> Session:
    """Read the body of `GET /api/v1/sessions/{id}`, which names stages and agents, and holds none of their calls."""
    return _session(body, _stages(body, objects(body.get("stages")), {}, {}))


def _session(detail: Mapping[str, Any], stages: list[Mapping[str, Any]]) -> Session:
    body = {"session_id": detail.get("id"), "final_analysis_summary": detail.get("executive_summary"), **detail}
    times = {f"{name}_us": microseconds(detail.get(name)) for name in ("started_at", "completed_at")}
    afterwards = tuple(filter(None, (read_afterwards(stage) for stage in stages if is_left_out(stage))))
    return replace(read_detail({**body, "stages": stages, **times}), afterwards=afterwards or None)


RecordedCalls = Mapping[Any, Mapping[str, Any]]  # recorded calls by id, in the order of their bodies


def _stages(
    detail: Mapping[str, Any], listed: list[Mapping[str, Any]], calls: RecordedCalls, told: Told
) -> list[Mapping[str, Any]]:
    """Build the listed stages; what the detail knows of one is found by its id, or by its name."""
    known = {text(each.get(by)): each for by in ("stage_name", "id") for each in objects(detail.get("stages"))}
    return [
        _stage(
            stage,
            number,
            mapping(known.get(text(stage.get("stage_id"))) or known.get(text(stage.get("stage_name")))),
            calls,
            told,
        )
        for number, stage in enumerate(listed)
    ]


def _told(stages: Iterable[Mapping[str, Any]], found: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the files of calls that do not belong to a stage in which the session was scored."""
    scored = [stage for stage in stages if is_left_out(stage) and read_afterwards(stage) is None]
    ids = {event["given"] for stage in scored for event in _events_below(stage)}
    return [call for call in found if _id(call) not in ids]


def _events_below(stage: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (event for event in objects(stage.get("chronological_interactions")) if "given" in event)
    for name in ("parallel_executions", "sub_agents"):
        for child in objects(stage.get(name)):
            yield from _events_below(child)


def _require_files(stages: Iterable[Mapping[str, Any]], calls: RecordedCalls) -> None:
    """Raise RefusedError, which says how many, where calls that the list names have no file."""
    listed = {given for stage in stages for each in objects(stage.get("executions")) for given in _listed(each)}
    if missing := listed - set(calls):
        raise RefusedError(f"{len(missing)} of {len(listed)} calls of {LISTS[0]} have no file in {CALLS}")


def _listed(execution: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the ids of the calls that an agent and its sub-agents made."""
    yield from _own(execution)
    for sub_agent in objects(execution.get("sub_agents")):
        yield from _listed(sub_agent)


def _own(execution: Mapping[str, Any]) -> set[str | None]:
    lists = ("llm_interactions", "mcp_interactions", "session_interactions")
    return {text(each.get("id")) for name in lists for each in objects(execution.get(name))}


def _stage(
    stage: Mapping[str, Any], number: int, detail: Mapping[str, Any], calls: RecordedCalls, told: Told
) -> Mapping[str, Any]:
    """Build a stage in the form of a session detail: of one agent, or with children where there are several."""
    agents = _agents(stage, objects(detail.get("executions")), "executions", calls, told)
    named = {name: stage.get(name) for name in ("stage_type", "stage_name")}
    times = {f"{name}_us": microseconds(detail.get(name)) for name in ("started_at", "completed_at")}
    whole = {**named, **times, "stage_index": number, "status": detail.get("status")}
    if len(agents) == 1:
        return {**agents[0], **whole}
    return {**whole, "agent": "parallel", "parallel_type": detail.get("parallel_type"), "parallel_executions": agents}


def _agents(
    holder: Mapping[str, Any],
    details: list[Mapping[str, Any]],
    name: str,
    calls: RecordedCalls,
    told: Told,
    stage_name: str | None = None,
) -> list[Mapping[str, Any]]:
    """Build the agents of a stage, or the sub-agents of an agent, with theirs."""
    known = {text(each.get(by)): each for by in ("agent_name", "execution_id") for each in details}
    agents: list[Mapping[str, Any]] = []
    for position, execution in enumerate(objects(holder.get(name))):
        agent = text(execution.get("agent_name"))
        detail = mapping(known.get(text(execution.get("execution_id"))) or known.get(agent))
        events = told.get(text(execution.get("execution_id"))) or told.get(agent) or ()
        named = f"{stage_name or holder.get('stage_name')} - {execution.get('agent_name')}"
        agents.append(
            {
                "stage_name": named,
                "agent": execution.get("agent_name"),
                "status": detail.get("status"),
                "error_message": detail.get("error_message"),
                "started_at_us": microseconds(detail.get("started_at")),
                "completed_at_us": microseconds(detail.get("completed_at")),
                "parallel_index": position,
                **_unfolded([*befell(events, detail), *_calls_of(execution, calls)]),
                "sub_agents": _agents(execution, objects(detail.get("sub_agents")), "sub_agents", calls, told, named),
            }
        )
    return agents


def _calls_of(execution: Mapping[str, Any], calls: RecordedCalls) -> list[Mapping[str, Any]]:
    """List the calls of one agent in the order of their files, which is that of time."""
    own = _own(execution)
    return [event for given, event in calls.items() if given in own]


def _id(call: Mapping[str, Any]) -> str | None:
    return text((mapping(call.get("meta")) or call).get("id"))


def _event(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert one file to a recorded call of a session detail."""
    if "meta" not in call:
        return _event_of_api(call)
    meta, sections = mapping(call.get("meta")), mapping(call.get("sections"))
    common = {"error_message": meta.get("error_message"), "server_name": meta.get("server_name")}
    if "server_name" not in meta:
        exchange = {**common, "interaction_type": meta.get("interaction_type"), "conversation": call}
        return {"given": _id(call), "type": "llm", "details": {**exchange, "thinking_content": _thought(meta)}}
    server = text(meta.get("server_name")) or "unknown"
    details = {
        **common,
        "communication_type": meta.get("interaction_type"),
        "tool_name": meta.get("tool_name"),
        "tool_arguments": decoded(sections.get("TOOL_ARGUMENTS")) or {},
        "tool_result": decoded(sections.get("TOOL_RESULT")),
        "available_tools": {server: decoded(sections.get("AVAILABLE_TOOLS"))},
    }
    return {"given": _id(call), "type": "mcp", "details": details}


def _event_of_api(call: Mapping[str, Any]) -> Mapping[str, Any]:
    event = {"given": _id(call), "timestamp_us": microseconds(call.get("created_at"))}
    names = ("error_message", "server_name", "tool_name", "tool_arguments", "tool_result")
    details = {name: call.get(name) for name in names}
    if "server_name" in call or "tool_name" in call:
        tools = {str(call.get("server_name") or ""): call.get("available_tools")}
        details |= {"communication_type": call.get("interaction_type"), "available_tools": tools}
        return {**event, "type": "mcp", "details": details}
    messages = generic.conversation(call) or objects(mapping(call.get("llm_request")).get("messages"))
    response = mapping(call.get("llm_response"))
    said = {"content": response.get("text") or response.get("content"), "tool_calls": response.get("tool_calls")}
    if (not messages or messages[-1].get("role") != "assistant") and any(said.values()):
        messages = [*messages, {"role": "assistant", **said}]
    said = {"interaction_type": call.get("interaction_type"), "thinking_content": _thought(call)}
    return {**event, "type": "llm", "details": {**details, **said, "conversation": {"messages": messages}}, "api": True}


def _unfolded(events: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Build an agent's calls in time order, with what only their conversations tell: orders, and tool calls unrecorded.

    What the agent was told before it first spoke is its `briefing`.
    """
    recorded = [mapping(event["details"]) for event in events if event["type"] == "mcp"]
    open_calls = [details for details in recorded if details.get("communication_type") != "tool_list"]
    results = _results(events)
    briefing, before, asked = None, list[Any](), set[Any]()
    whole: list[Mapping[str, Any]] = []
    for event in in_time_order(events, lambda each: each.get("timestamp_us")):
        if "api" not in event:
            whole.append(event)
            continue
        messages = objects(mapping(mapping(event["details"]).get("conversation")).get("messages"))
        at, shared = event.get("timestamp_us"), _shared(before, messages)
        spoken = next((place for place, each in enumerate(messages) if each.get("role") == "assistant"), len(messages))
        if not before:
            told = (generic.content_text(each.get("content")) for each in messages[:spoken])
            briefing = "\n\n".join(filter(None, told)) or None
            shared = spoken
        if shared or not before:  # else another conversation, like that which sums up a result
            before = messages
        else:
            shared = len(messages) - 1
        replied = bool(messages) and messages[-1].get("role") == "assistant"
        for message in messages[shared : len(messages) - replied]:
            if message.get("role") == "user" and message.get("content"):
                whole.append({"type": "told", "timestamp_us": at, "details": {"content": message["content"]}})
            elif message.get("role") == "assistant":
                exchange = {"interaction_type": "iteration", "conversation": {"messages": [message]}}
                whole.append({"type": "llm", "timestamp_us": at, "details": exchange})
        whole.append(event)
        for message in messages[shared:]:
            for call in objects(message.get("tool_calls")):
                given = text(call.get("id"))
                if given not in asked and not _take(open_calls, call):
                    whole.append({"type": "mcp", "timestamp_us": at, "details": _unrecorded(call, results.get(given))})
                asked |= {given} - {None}
    return {"chronological_interactions": whole, "briefing": briefing}


def _shared(before: list[Any], messages: list[Mapping[str, Any]]) -> int:
    """Count the messages with which both conversations begin."""
    places = zip(before, messages, strict=False)
    parts = ("role", "content", "tool_call_id")
    said = ({generic.as_json([each.get(part) for part in parts]) for each in pair} for pair in places)
    differ = (place for place, words in enumerate(said) if len(words) > 1)
    return next(differ, min(len(before), len(messages)))


def _results(events: Iterable[Mapping[str, Any]]) -> dict[str | None, Any]:
    """Collect the results that conversations tell of, by the id of the tool call."""
    conversations = [mapping(mapping(event["details"]).get("conversation")) for event in events if "api" in event]
    messages = [message for each in conversations for message in objects(each.get("messages"))]
    return {text(each.get("tool_call_id")): each.get("content") for each in messages if each.get("role") == "tool"}


def _take(recorded: list[Mapping[str, Any]], call: Mapping[str, Any]) -> bool:
    """Take the recorded call that this call of a conversation is, with the same arguments if there is one."""
    name, arguments = text(call.get("name")), decoded(call.get("arguments")) or {}
    named = [place for place, each in enumerate(recorded) if name in _names(each)]
    equal = (place for place in named if (recorded[place].get("tool_arguments") or {}) == arguments)
    place = next(equal, next(iter(named), None))
    if place is None:
        return False
    del recorded[place]
    return True


def _names(details: Mapping[str, Any]) -> tuple[str | None, ...]:
    server, tool = details.get("server_name"), details.get("tool_name")
    return text(tool), f"{server}__{tool}", f"{server}.{tool}"


def _unrecorded(call: Mapping[str, Any], result: Any) -> Mapping[str, Any]:
    server, mark, tool = (text(call.get("name")) or "unknown").partition("__")
    named = {"server_name": server, "tool_name": tool} if mark else {"server_name": None, "tool_name": server}
    return {**named, "communication_type": "tool_call", "tool_arguments": call.get("arguments"), "tool_result": result}


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
        value = decode_once(files.read(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(reason_of(error)) from error
    generic.require_flat(value)
    return value


# The timeline of a session (`GET …/timeline`): what befell its agents, and their calls.


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
