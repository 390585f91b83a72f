"""A session in one normal form, whichever system made it: stages of agents, and what each said and asked of tools."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from core.errors import SourceError
from core.hashing import canonical_json

FORCED_CONCLUSION = "forced_conclusion"
SUMMARIZATION = "summarization"

Status = Literal["completed", "failed", "cancelled", "timed_out"]
TERMINAL: tuple[Status, ...] = ("completed", "failed", "cancelled", "timed_out")


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One call of an agent to its model: what the model thought and said, or why it said nothing.

    `purpose` is the system's own word for the call, such as investigation, final_analysis, forced_conclusion or
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
    parallel: str | None = None  # how its children differ, such as multi_agent or replica
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
