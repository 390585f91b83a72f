"""A session in one normal form, whichever system made it: stages of agents, and what each said and asked of tools."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from evalake.core.errors import EvalakeError, SourceError
from evalake.core.hashing import canonical_json
from evalake.sdk import Sample

FORCED_CONCLUSION = "forced_conclusion"
SUMMARIZATION = "summarization"

Status = Literal["completed", "failed", "cancelled", "timed_out"]
TERMINAL: tuple[Status, ...] = ("completed", "failed", "cancelled", "timed_out")


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One call of an agent to its model: what the model thought and said, or why it said nothing.

    `purpose` is the system's own word for the call, like investigation, final_analysis, forced_conclusion or
    summarization (of the tool result before it).
    """

    kind: Literal["said"] = "said"
    at_us: int | None = None
    purpose: str = "investigation"
    thinking: str | None = None
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, with what came back. `arguments` is JSON, or text as the agent wrote it."""

    tool: str
    kind: Literal["tool"] = "tool"
    at_us: int | None = None
    server: str | None = None
    arguments: str = "{}"
    result: str | None = None
    error: str | None = None

    @property
    def name(self) -> str:
        """`server.tool`, or the tool alone."""
        return f"{self.server}.{self.tool}" if self.server else self.tool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that befell the agent: it was paused or resumed, or its tools could not be listed."""

    text: str
    kind: Literal["event"] = "event"
    at_us: int | None = None


Interaction: TypeAlias = AgentMessage | ToolCall | Event


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that an agent could have called."""

    name: str
    server: str | None = None
    description: str | None = None

    @property
    def full_name(self) -> str:
        """`server.tool`, or the tool alone."""
        return f"{self.server}.{self.name}" if self.server else self.name


@dataclass(frozen=True, slots=True)
class Stage:
    """One agent's part of a session; a parallel stage has no interactions, but children that ran side by side.

    Sub-agents are children of the agent that sent them.
    """

    name: str
    agent: str
    status: str
    interactions: tuple[Interaction, ...] = ()
    tools: tuple[Tool, ...] = ()
    children: tuple["Stage", ...] = ()
    parallel: str | None = None  # how its children differ, like multi_agent or replica
    error: str | None = None
    started_at_us: int | None = None
    completed_at_us: int | None = None
    briefing: str | None = None  # what the agent was told before it first spoke; kept, and not shown to judges

    @property
    def agents(self) -> Iterator["Stage"]:
        """The stages that an agent worked in: itself, or its children."""
        if self.interactions or not self.children:
            yield self
        for child in self.children:
            yield from child.agents


@dataclass(frozen=True)
class Session:
    """One investigation, over and done with. Times are microseconds since 1970 (UTC); unknown is None."""

    session_id: str
    status: Status
    agent: str
    alert: str  # JSON, or text
    alert_type: str | None = None
    runbook: str | None = None
    final_analysis: str | None = None
    summary: str | None = None  # the executive summary
    error: str | None = None
    stages: tuple[Stage, ...] = ()
    started_at_us: int | None = None
    completed_at_us: int | None = None
    afterwards: tuple[Stage, ...] | None = None  # chats and the making of the summary; kept, and not shown to judges

    @property
    def agents(self) -> Iterator[Stage]:
        """Every stage that an agent worked in, in the order in which they are shown."""
        for stage in self.stages:
            yield from stage.agents

    @property
    def interactions(self) -> Iterator[Interaction]:
        """Every interaction, in the order in which they are shown."""
        for stage in self.agents:
            yield from stage.interactions

    @property
    def tool_calls(self) -> Iterator[ToolCall]:
        """Every call of a tool, in the order in which they are shown."""
        return (each for each in self.interactions if isinstance(each, ToolCall))


_ADAPTER = TypeAdapter(Session)


def dump(session: Session) -> str:
    """Write a session as canonical JSON, what is unknown left out."""
    return canonical_json(_ADAPTER.dump_python(session, mode="json", exclude_none=True)).decode("utf-8")


def load(text: str) -> Session:
    """Read a session from canonical JSON text. Raises SourceError where it is none."""
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SourceError(f"this is no session in normal form: {where or 'the whole'}: {first['msg']}") from error


# A session as the text that a judge reads, fitted to the judge's context.


HEAD, TAIL = 600, 200  # characters that are kept of what is shortened
NAMES = 200  # characters of a name that a heading shows

MOST_CHARACTERS = 1_000_000  # of a session that people see

NOTHING = "(nothing)"
FINAL_ANALYSIS = "FINAL ANALYSIS"


class Kind(IntEnum):
    """The kinds of blocks, in the order in which they are cut; the last kind never is."""

    RESULT = 0
    SPEECH = 1
    BACKGROUND = 2
    KEPT = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A heading and what stands under it. `number` is that of the interaction it belongs to, 0 for none."""

    heading: str
    body: str
    kind: Kind = Kind.KEPT
    number: int = 0


@dataclass(frozen=True, slots=True)
class FittedConversation:
    """The text that a judge reads, and what was cut to make it fit."""

    text: str
    cut: Mapping[int, int]
    """Characters that the judge does not see, by interaction; 0 stands for runbook and tools."""


def fit(session: Session, budget: int, fence: str = "") -> FittedConversation:
    """Fit the session's text into `budget` characters where the rule allows. Linear in the session's length."""
    blocks = list(blocks_of(session))
    texts = [block.body for block in blocks]
    removed = [0] * len(blocks)
    room = budget - sum(len(_framed(block.heading, fence, block.body)) for block in blocks)
    for kind, keep in _STEPS:
        if room >= 0:
            break
        for place, block in enumerate(blocks):
            if block.kind is not kind:
                continue
            shorter, gone = _shortened(block.body, keep)
            if gone > removed[place]:
                room += len(texts[place]) - len(shorter)
                texts[place], removed[place] = shorter, gone
            if room >= 0:
                break
    text = "".join(_framed(block.heading, fence, body) for block, body in zip(blocks, texts, strict=True))
    cut: dict[int, int] = {}
    for block, gone in zip(blocks, removed, strict=True):
        if gone:
            cut[block.number] = cut.get(block.number, 0) + gone
    return FittedConversation(text, cut)


def session_text(sample: Sample, budget: int = MOST_CHARACTERS) -> str:
    """Write the session as its judge reads it; its JSON where it cannot be read as one."""
    try:
        return fit(load(sample.input), budget).text
    except (EvalakeError, ValueError):
        return sample.input


_STEPS = tuple((kind, keep) for keep in (HEAD + TAIL, 0) for kind in Kind if kind is not Kind.KEPT)


def _shortened(body: str, keep: int) -> tuple[str, int]:
    """Cut the middle of a text, all but `keep` characters, and count what was cut; leave it if that saves none."""
    tail = keep * TAIL // (HEAD + TAIL)
    head = keep - tail
    removed = len(body) - keep
    note = f"(… {removed} characters were cut here …)"
    shorter = f"{body[:head]}\n{note}\n{body[len(body) - tail :]}" if keep else note
    return (shorter, removed) if len(shorter) < len(body) else (body, 0)


def _framed(heading: str, fence: str, body: str) -> str:
    line = f"{heading} [{fence}]" if fence else heading
    return f"{line}\n{body}\n\n" if body else f"{line}\n\n"


def blocks_of(session: Session) -> Iterator[Block]:
    """Yield all that a judge should know of a session, in the order of its stages, except its alert, shown apart."""
    yield Block("# SESSION", "\n".join(_facts(session)))
    if session.runbook:
        yield Block("# RUNBOOK", session.runbook, Kind.BACKGROUND)
    yield Block("# TOOLS AVAILABLE", "\n".join(_tools(session)) or NOTHING, Kind.BACKGROUND)
    number = 0
    last_said = _last_said(session)
    for position, stage in enumerate(session.stages, start=1):
        yield _stage_heading(f"# STAGE {position}", stage)
        for part, worker in enumerate(stage.agents, start=1):
            if worker is not stage:
                yield _stage_heading(f"## AGENT {position}.{part}", worker)
            for interaction in worker.interactions:
                number += 1
                yield from _blocks(interaction, number, interaction is last_said.get(id(worker)))
    yield Block(f"# {FINAL_ANALYSIS}", session.final_analysis or NOTHING)
    if session.summary:
        yield Block("# EXECUTIVE SUMMARY", session.summary)


def _last_said(session: Session) -> dict[int, Interaction]:
    """Find what each agent said last, which is its conclusion, by the `id` of its stage."""
    return {
        id(worker): each
        for worker in session.agents
        for each in worker.interactions
        if isinstance(each, AgentMessage) and each.text
    }


def _facts(session: Session) -> Iterator[str]:
    yield f"status: {session.status}"
    yield f"agent: {_name(session.agent)}"
    if session.started_at_us is not None and session.completed_at_us is not None:
        yield f"duration: {(session.completed_at_us - session.started_at_us) / 1e6:.1f} s"
    if session.error:
        yield f"error: {session.error}"


def _tools(session: Session) -> Iterator[str]:
    """Yield a line for every tool that any agent could have called, naming those agents where they are not all."""
    workers = [worker for worker in session.agents if worker.tools]
    holders: dict[tuple[str, str | None], list[str]] = {}
    for worker in workers:
        for tool in worker.tools:
            holders.setdefault((tool.full_name, tool.description), []).append(worker.agent)
    for (name, description), agents in holders.items():
        only = "" if len(agents) == len(workers) else f" (only {', '.join(map(_name, dict.fromkeys(agents)))})"
        yield f"- {_name(name)}{only}: {' '.join((description or 'no description').split())}"


def _stage_heading(title: str, stage: Stage) -> Block:
    side_by_side = f", {len(stage.children)} agents side by side ({_name(stage.parallel)})" if stage.parallel else ""
    error = f"\nerror: {stage.error}" if stage.error else ""
    about = f"agent: {_name(stage.agent)}{side_by_side}\nstatus: {_name(stage.status)}{error}"
    return Block(f"{title}: {_name(stage.name)}", about)


def _blocks(interaction: Interaction, number: int, concludes: bool) -> Iterator[Block]:
    if isinstance(interaction, ToolCall):
        yield from _call_blocks(interaction, number)
    elif isinstance(interaction, AgentMessage):
        yield from _said_blocks(interaction, number, concludes)
    else:
        yield Block(f"## {number} EVENT", interaction.text, Kind.KEPT, number)


def _call_blocks(call: ToolCall, number: int) -> Iterator[Block]:
    yield Block(f"## {number} TOOL CALL {_name(call.name)}", call.arguments, Kind.KEPT, number)
    if call.error:
        yield Block(f"## {number} ERROR", call.error, Kind.KEPT, number)
    if call.result is not None or not call.error:
        yield Block(f"## {number} RESULT", call.result or NOTHING, Kind.RESULT, number)


def _said_blocks(message: AgentMessage, number: int, concludes: bool) -> Iterator[Block]:
    if message.thinking:
        yield Block(f"## {number} AGENT THINKS", message.thinking, Kind.SPEECH, number)
    if message.text:
        heading = {
            FORCED_CONCLUSION: "AGENT IS MADE TO CONCLUDE AT ITS LIMIT",
            SUMMARIZATION: "SUMMARY SHOWN TO THE AGENT INSTEAD",
        }.get(message.purpose, "AGENT SAYS")
        yield Block(f"## {number} {heading}", message.text, Kind.KEPT if concludes else Kind.SPEECH, number)
    if message.error:
        yield Block(f"## {number} ERROR", message.error, Kind.KEPT, number)


def _name(name: str | None) -> str:
    """Write a name on one line, for headings."""
    return " ".join((name or "unknown").split())[:NAMES]
