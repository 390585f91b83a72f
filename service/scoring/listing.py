"""The list of sessions: which ones, in which order, which page."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from contracts.contract import Row
from service.scoring.scorings import State
from service.scoring.sessions import Known
from service.scoring.views import Entry, SessionStatus, micros

Status = Literal["not_scored", "pending", "in_progress", "completed", "failed"]
Sort = Literal[
    "session", "alert_type", "agent", "session_status", "time", "duration", "tool_calls",
    "status", "score", "asked_at", "scored_at", "scored_by",
]  # fmt: skip
Time = Annotated[int, Field(ge=0, lt=2**62)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Name = Annotated[str, Field(max_length=1000)]

CHOICES = 500  # of each kind at most, that a reader may choose from

_SECOND = 1_000_000


class Wanted(BaseModel):
    """The parameters of the list."""

    model_config = ConfigDict(extra="ignore")

    status: list[Status] = Field(default_factory=list, description="Of the newest scoring; may be repeated.")
    min_score: Annotated[int, Field(ge=0, le=100)] | None = None
    max_score: Annotated[int, Field(ge=0, le=100)] | None = None
    criteria: Literal["current", "obsolete"] | None = Field(None, description="Those that the score was made under.")
    session_status: list[SessionStatus] = Field(default_factory=list, description="How the session ended.")
    alert_type: list[Name] = Field(default_factory=list, description="May be repeated, as may agent and scored_by.")
    agent: list[Name] = Field(default_factory=list)
    scored_by: list[Name] = Field(default_factory=list, description="Who asked for the newest scoring.")
    from_us: Time | None = Field(None, description="Only sessions that began then or later.")
    to_us: Time | None = Field(None, description="Only sessions that began then or earlier.")
    scored_from_us: Time | None = Field(None, description="Only those whose newest scoring ended then or later.")
    scored_to_us: Time | None = Field(None, description="Only those whose newest scoring ended then or earlier.")
    min_seconds: Count | None = Field(None, description="How long the session took at least.")
    max_seconds: Count | None = Field(None, description="How long the session took at most.")
    min_tool_calls: Count | None = None
    max_tool_calls: Count | None = None
    search: Annotated[str, Field(max_length=200)] = Field("", description="Text in id, alert type, agent or alert.")
    sort: Sort = "time"
    order: Literal["asc", "desc"] = "desc"
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Field(ge=1, le=200)] = 25


WantedQuery = Annotated[Wanted, Query()]


class Choices(BaseModel):
    """What the sessions can be filtered by, in the order of the alphabet."""

    alert_types: list[str]
    agents: list[str]
    scored_by: list[str]


class SessionPage(BaseModel):
    """Some of the sessions."""

    sessions: list[Entry]
    page: int
    page_size: int
    total: int
    pages: int
    choices: Choices


Found = tuple[Known, Row | None]  # a session and its newest scoring


def matching(sessions: Iterable[Known], state: State, wanted: Wanted) -> list[Found]:
    """List the sessions that match the filters, in order; those without a value to sort by come last."""
    found = ((known, state.newest(known.session_id)) for known in sessions)
    chosen = [each for each in found if _matches(*each, wanted, state)]
    chosen.sort(key=lambda each: each[0].session_id)
    keyed = [(_sort_key(each, wanted), each) for each in chosen]
    with_value = [each for each in keyed if each[0] is not None]
    with_value.sort(key=lambda each: each[0], reverse=wanted.order == "desc")
    return [each for _, each in with_value] + [each for value, each in keyed if value is None]


def choices(sessions: Iterable[Known], state: State) -> Choices:
    """List the values that these sessions can be filtered by."""
    known = list(sessions)
    newest = (state.newest(each.session_id) for each in known)
    return Choices(
        alert_types=_names(each.alert_type for each in known),
        agents=_names(each.agent for each in known),
        scored_by=_names(row["score_triggered_by"] for row in newest if row is not None),
    )


def _names(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name}, key=lambda name: (name.casefold(), name))[:CHOICES]


def _matches(known: Known, newest: Mapping[str, Any] | None, wanted: Wanted, state: State) -> bool:
    row = newest or {"status": "not_scored"}
    chosen = (
        (row["status"], wanted.status),
        (known.session_status, wanted.session_status),
        (known.alert_type, wanted.alert_type),
        (known.agent, wanted.agent),
        (row.get("score_triggered_by"), wanted.scored_by),
    )
    ranges = (
        (row.get("total_score"), wanted.min_score, wanted.max_score),
        (known.started_at_us, wanted.from_us, wanted.to_us),
        (micros(row.get("completed_at")), wanted.scored_from_us, wanted.scored_to_us),
        (_microseconds(known), _in_micros(wanted.min_seconds), _in_micros(wanted.max_seconds)),
        (known.tool_calls, wanted.min_tool_calls, wanted.max_tool_calls),
    )
    return (
        all(not names or value in names for value, names in chosen)
        and all(_is_within(*each) for each in ranges)
        and _is_under(newest, wanted.criteria, state)
        and wanted.search.casefold() in known.searched
    )


def _is_under(newest: Mapping[str, Any] | None, criteria: Literal["current", "obsolete"] | None, state: State) -> bool:
    if criteria is None:
        return True
    return newest is not None and state.is_current(newest) == (criteria == "current")


def _is_within(value: int | None, first: int | None, last: int | None) -> bool:
    if first is None and last is None:
        return True
    return value is not None and (first is None or value >= first) and (last is None or value <= last)


def _in_micros(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * _SECOND


def _microseconds(known: Known) -> int | None:
    if known.started_at_us is None or known.completed_at_us is None:
        return None
    return known.completed_at_us - known.started_at_us


_OF_SESSION: Mapping[str, Callable[[Known], Any]] = {
    "session": lambda known: known.session_id.casefold(),
    "alert_type": lambda known: known.alert_type and known.alert_type.casefold(),
    "agent": lambda known: known.agent.casefold(),
    "session_status": lambda known: known.session_status,
    "time": lambda known: known.started_at_us,
    "duration": _microseconds,
    "tool_calls": lambda known: known.tool_calls,
}
_OF_SCORING = {
    "status": "status",
    "score": "total_score",
    "asked_at": "asked_at",
    "scored_at": "completed_at",
    "scored_by": "score_triggered_by",
}


def _sort_key(entry: Found, wanted: Wanted) -> Any:
    known, newest = entry
    if wanted.sort in _OF_SESSION:
        return _OF_SESSION[wanted.sort](known)
    return None if newest is None else newest[_OF_SCORING[wanted.sort]]
