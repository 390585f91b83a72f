"""A session as the text that a judge reads, fitted to the judge's context.

For a judge, every heading ends in the session's fence in brackets: nothing that was written into the session can
imitate a heading. People read the text without it. What stands under a heading is verbatim.

A session that is too long is shortened by this rule, until it fits:
1. results of tools, the oldest first (in the order in which they are shown), to their first 600 and last 200
   characters;
2. what agents thought and said, the oldest first, likewise; what they said last is their conclusion and stays;
3. the runbook and the list of tools, likewise;
4. in the same order, they are left out whole.
Alert, conclusions, calls with their arguments, errors and events are never cut, so that a session can stay too long.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from suites.session_review.session import (
    FORCED_CONCLUSION,
    SUMMARIZATION,
    AgentMessage,
    Interaction,
    Session,
    Stage,
    ToolCall,
)

HEAD, TAIL = 600, 200  # characters that are kept of what is shortened
NAMES = 200  # characters of a name that a heading shows

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
