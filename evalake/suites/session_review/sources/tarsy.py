"""TARSy's bodies as sessions: the session detail (`/history/sessions/{id}`) and the final analysis of one.

What is left out: chat stages (they follow the investigation), and every call that scored the session. Judges are known
by stage type or by the call's own word; besides, of calls that belong to no stage only tool calls are kept, for a
judge's calls may be recorded without a stage and with the usual word `investigation`. The summary stands apart.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from evalake.sdk.json_in_text import mapping, objects
from evalake.suites.session_review.session import AgentMessage, Event, Interaction, Session, Stage, Tool, ToolCall
from evalake.suites.session_review.sources import generic
from evalake.suites.session_review.sources.generic import content_text, microseconds, text

SUMMARY_PURPOSES = ("final_analysis_summary", "executive_summary")
LEFT_OUT_STAGES = ("chat", "scoring", "exec_summary")
_JUDGE = re.compile(r"scor|judg|memory_extraction", re.IGNORECASE)  # memories are taken from a session with its score
_RUNBOOK_START, _RUNBOOK_END = "<!-- RUNBOOK START -->", "<!-- RUNBOOK END -->"
_OBSERVATION = re.compile(r"\s*(?:Observation|Tool Result):\s*(?:([\w-]{1,99}\.[\w./-]{1,99}):\s*)?(.*)", re.DOTALL)
_ACTION = re.compile(r"^Action:[ \t]*(\S+)[ \t]*$(?:\s*^Action Input:[ \t]*(.*))?", re.DOTALL | re.MULTILINE)

RESUMED = "The agent was started again and listed its tools anew, as happens after a pause."
PAUSED = "The agent was paused."
_REPORTED = re.compile(r"^\*\*(Alert Type|Processing Chain):\*\*[ \t]*(\S.*)$", re.MULTILINE)

Timed = TypeVar("Timed")


@generic.refusing()
def read_detail(body: Mapping[str, Any]) -> Session:
    """Read the session of a session-detail body. Raises RefusedError where it is none, or not over."""
    stages = tuple(_stages(body))
    events = _events(body, "session_level_interactions")
    if loose := tuple(each for each in _interactions(events) if isinstance(each, ToolCall)):
        stages = (*stages, Stage("outside any stage", _agent(body), "completed", loose))
    return Session(
        session_id=generic.identity(body.get("session_id")),
        status=generic.status(body.get("status")),
        agent=_agent(body),
        alert=text(body.get("alert_data")) or "",
        alert_type=text(body.get("alert_type")),
        runbook=_runbook(body),
        final_analysis=text(body.get("final_analysis")),
        summary=text(body.get("final_analysis_summary")),
        error=text(body.get("error_message")),
        stages=stages,
        started_at_us=microseconds(body.get("started_at_us")),
        completed_at_us=microseconds(body.get("completed_at_us")),
    )


def read_final_analysis(body: Mapping[str, Any]) -> Session:
    """Read the session of a final-analysis body, which holds the last stage's conversation alone.

    Alert type and chain are read from the head of TARSy's report, for the body does not name them.
    """
    spoken = mapping(body.get("llm_conversation"))
    messages = objects(spoken.get("messages"))
    report = text(body.get("final_analysis"))
    reported = dict(_REPORTED.findall((report or "")[:2000]))
    agent = reported.get("Processing Chain", _agent(body))
    return Session(
        session_id=generic.identity(body.get("session_id")),
        status=generic.status(body.get("status")),
        agent=agent,
        alert=text(body.get("alert_data")) or "",
        alert_type=text(body.get("alert_type")) or reported.get("Alert Type"),
        runbook=_first_runbook(messages),
        final_analysis=report,
        summary=text(body.get("final_analysis_summary")),
        stages=(Stage("final analysis", agent, "completed", tuple(spoken_turns(messages))),) if messages else (),
        completed_at_us=microseconds(spoken.get("timestamp_us")),
    )


def spoken_turns(messages: Iterable[Mapping[str, Any]]) -> Iterator[Interaction]:
    """Yield what the agent said, and the tool calls in plain messages (`Action:` … `Observation:`, `Tool Result:`).

    Anything else that the agent was told becomes an event, for the results of earlier stages come in no other way.
    """
    action: re.Match[str] | None = None
    for message in messages:
        content = content_text(message.get("content")) or ""
        if message.get("role") == "assistant":
            action = next(iter(_ACTION.finditer(content)), None)
            yield AgentMessage(text=content or None)
        elif observed := _OBSERVATION.fullmatch(content):
            name = observed[1] or (action[1] if action else "unknown")
            server, _, tool = name.rpartition(".")
            arguments = (action[2] or "").strip() if action else ""
            yield ToolCall(tool, server=server or None, arguments=arguments or "{}", result=observed[2])
            action = None
        elif message.get("role") == "user" and content:
            yield Event(f"The agent was told:\n{content}")


def _agent(body: Mapping[str, Any]) -> str:
    """Name the agent, or the chain of agents, that investigated."""
    return text(body.get("chain_id")) or (text(body.get("agent_type")) or "unknown").removeprefix("chain:")


def _stages(body: Mapping[str, Any]) -> Iterator[Stage]:
    exported = objects(body.get("stages"))
    if not isinstance(body.get("stages"), list):
        raise generic.RefusedError(generic.NO_SESSION)
    own = [each for each in exported if not is_left_out(each)]
    for stage in sorted(own, key=_time_order):
        yield _stage(stage)


def is_left_out(stage: Mapping[str, Any]) -> bool:
    """Tell whether the stage is a chat about the session, its summary, or its scoring."""
    kind, agent = str(stage.get("stage_type")), str(stage.get("agent"))
    return bool(stage.get("chat_id")) or kind in LEFT_OUT_STAGES or bool(_JUDGE.search(kind)) or agent == "ScoringAgent"


def _time_order(stage: Mapping[str, Any]) -> tuple[bool, int, int]:
    """Build the sort key of a stage: by start; those that never started come last, in the order of the plan."""
    started, index = microseconds(stage.get("started_at_us")), microseconds(stage.get("stage_index"))
    return started is None, started or 0, index or 0


def is_for_judge_or_summary(purpose: str) -> bool:
    """Tell whether a call with this purpose scored the session or summed it up."""
    return bool(_JUDGE.search(purpose)) or purpose in SUMMARY_PURPOSES


def read_afterwards(stage: Mapping[str, Any]) -> Stage | None:
    """Read a stage that is left out, with its summaries, to be kept beside the session; None where it scored it."""
    if _JUDGE.search(str(stage.get("stage_type"))) or stage.get("agent") == "ScoringAgent":
        return None
    return _stage(stage, is_afterwards=True)


def _stage(stage: Mapping[str, Any], is_child: bool = False, is_afterwards: bool = False) -> Stage:
    events = _events(stage, "chronological_interactions", "llm_interactions", "mcp_communications")
    children = [] if is_child else objects(stage.get("parallel_executions"))
    sent = objects(stage.get("sub_agents"))
    interactions = list(_interactions(events, is_afterwards))
    if (paused := microseconds(stage.get("paused_at_us"))) is not None:
        interactions.append(Event(PAUSED, at_us=paused))
    return Stage(
        name=text(stage.get("stage_name")) or "stage",
        agent=text(stage.get("agent")) or "unknown",
        status=text(stage.get("status")) or "unknown",
        interactions=tuple(in_time_order(interactions, lambda each: each.at_us)),
        tools=tuple(dict.fromkeys(_tools(events))),
        children=tuple(
            _stage(child, is_child=True, is_afterwards=is_afterwards)
            for child in sorted((*children, *sent), key=lambda child: microseconds(child.get("parallel_index")) or 0)
        ),
        parallel=text(stage.get("parallel_type")) if children else None,
        error=text(stage.get("error_message")),
        started_at_us=microseconds(stage.get("started_at_us")),
        completed_at_us=microseconds(stage.get("completed_at_us")),
        briefing=text(stage.get("briefing")),
    )


def _events(holder: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """Collect the recorded calls in these lists, each once, in time order."""
    events: dict[Any, Mapping[str, Any]] = {}
    for name in names:
        for number, event in enumerate(objects(holder.get(name))):
            given = event.get("event_id") or event.get("id")
            events.setdefault(given if isinstance(given, str) else (name, number), event)
    return in_time_order(events.values(), lambda event: microseconds(event.get("timestamp_us")))


def in_time_order(given: Iterable[Timed], time_of: Callable[[Timed], int | None]) -> list[Timed]:
    """Sort by time; what has no time stays behind what stood before it."""
    before, timed = 0, []
    for each in given:
        at = time_of(each)
        before = before if at is None else at
        timed.append((before, each))
    return [each for _, each in sorted(timed, key=lambda pair: pair[0])]


def _interactions(events: Iterable[Mapping[str, Any]], is_afterwards: bool = False) -> Iterator[Interaction]:
    listed: set[str] = set()
    spoken = False
    for event in events:
        details = mapping(event.get("details"))
        at = microseconds(event.get("timestamp_us"))
        if event.get("type") == "told":
            yield Event(f"The agent was told:\n{text(details.get('content'))}", at_us=at)
        elif event.get("type") == "event":
            yield Event(text(event.get("text")) or "something happened", at_us=at)
        elif event.get("type") == "mcp" or "communication_type" in details:
            if details.get("communication_type") == "tool_list":
                server = str(details.get("server_name"))
                if server in listed and spoken:
                    yield Event(RESUMED, at_us=at)
                    spoken = False
                listed.add(server)
                if error := _error(details):
                    yield Event(f"The tools of {details.get('server_name')} could not be listed: {error}", at_us=at)
            else:
                yield _tool_call(details, at)
                spoken = True
        elif (message := _said(details, at, is_afterwards)) is not None:
            yield message
            spoken = True


def _said(details: Mapping[str, Any], at: int | None, is_afterwards: bool) -> AgentMessage | None:
    purpose = text(details.get("interaction_type")) or "investigation"
    if _JUDGE.search(purpose) or (purpose in SUMMARY_PURPOSES and not is_afterwards):
        return None
    messages = objects(mapping(details.get("conversation")).get("messages"))
    replied = bool(messages) and messages[-1].get("role") == "assistant"
    message = AgentMessage(
        at_us=at,
        purpose=purpose,
        thinking=text(details.get("thinking_content")),
        text=content_text(messages[-1].get("content")) if replied else None,
        error=_error(details),
    )
    return message if message.thinking or message.text or message.error else None


def _tool_call(details: Mapping[str, Any], at: int | None) -> ToolCall:
    given = details.get("tool_result")
    return ToolCall(
        tool=text(details.get("tool_name")) or "unknown",
        server=text(details.get("server_name")),
        at_us=at,
        arguments=text(details.get("tool_arguments")) or "{}",
        result=generic.result_text(given) or ("" if given is not None else None),
        error=_error(details) or _error_in_result(given),
    )


def _error(details: Mapping[str, Any]) -> str | None:
    """Read what went wrong; a call that failed without a message is still a failure."""
    return text(details.get("error_message")) or ("no reason given" if details.get("success") in (False, 0) else None)


def _error_in_result(result: Any) -> str | None:
    return "the tool reported an error" if mapping(result).get("is_error") is True else None


def _tools(events: Iterable[Mapping[str, Any]]) -> Iterator[Tool]:
    """Yield the tools listed in these calls, as often as they are."""
    for event in events:
        for server, listed in mapping(mapping(event.get("details")).get("available_tools")).items():
            for tool in objects(listed):
                yield Tool(text(tool.get("name")) or "unknown", text(server), text(tool.get("description")))


def _runbook(body: Mapping[str, Any]) -> str | None:
    """Find the runbook as the first agent was given it, or at least its URL."""
    for stage in objects(body.get("stages")):
        for each in (stage, *objects(stage.get("parallel_executions"))):
            for event in _events(each, "chronological_interactions", "llm_interactions"):
                messages = objects(mapping(mapping(event.get("details")).get("conversation")).get("messages"))
                if (runbook := _first_runbook(messages)) is not None:
                    return runbook
    return text(body.get("runbook_url"))


def _first_runbook(messages: Iterable[Mapping[str, Any]]) -> str | None:
    for message in messages:
        content = message.get("content")
        if isinstance(content, str) and message.get("role") == "user":
            _, opening, rest = content.partition(_RUNBOOK_START)
            runbook, closing, _ = rest.partition(_RUNBOOK_END)
            if opening and closing:
                return text(runbook.strip())
    return None
