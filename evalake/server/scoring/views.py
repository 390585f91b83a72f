"""The shapes of the scoring API, their conversion from rows, and the pages of the session list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from evalake.contracts.contract import Row
from evalake.server.scoring.scorings import State
from evalake.server.scoring.sessions import Known
from evalake.suites.session_review.replies import IMPROVABLE
from evalake.suites.session_review.session import Stage

Status = Literal["pending", "in_progress", "completed", "failed"]
SessionStatus = Literal["completed", "failed", "cancelled", "timed_out"]
Phase = Literal["analyzing_methodology", "identifying_missing_tools"]
ToolKind = Literal["unused", "absent", "improvable"]
Points = Annotated[int, Field(ge=0, le=25)]
Micros = Annotated[int, Field(description="Microseconds since 1970 (UTC)")]

EXAMPLE_HASH = "5f0c2c8f6a0ad2d09d1ff3b3f8f0f4b4b7b1b2d7b6a7c0a4d8e4f1b0c3d2e1f0"
_WHY = "it would have shown who holds the connections"
_ASKED = {"score_id": EXAMPLE_HASH, "session_id": "checkout-pool-exhausted", "prompt_hash": EXAMPLE_HASH[::-1]} | {
    "score_triggered_by": "alice", "scored_at_us": 1795293066282806, "current_prompt_used": True,
    "judge": "baseline/rubric-judge", "replicate": 0, "flow_run_id": "0197f8a2-5f2c-7c4e-9d55-7d1f6f0b8a11",
}  # fmt: skip
EXAMPLE_SCORE: dict[str, Any] = _ASKED | {
    "status": "completed", "total_score": 62, "error_message": None, "phase": None,
    "score_analysis": "Logical flow: 16/25. The agent named the pool before it had looked at its limits. …",
    "missing_tools_analysis": f"1. **pg-stat-activity**: {_WHY}.",
    "started_at_us": 1795293066294112, "completed_at_us": 1795293066348446,
    "logical_flow": 16, "consistency": 15, "tool_relevance": 15, "synthesis_quality": 16, "breakdown_consistent": True,
    "failure_tags": ["premature_conclusion"], "tools_to_improve": [],
    "missing_tools": [{"tool_name": "pg-stat-activity", "rationale": _WHY, "kind": "absent"}],
    "judge_words": None, "fallback_for": None, "retest_std": 4.2, "retest_sessions": 12,
    "cut_chars": 0, "cut_interactions": 0, "cost_usd": 0.0, "input_tokens": 4100, "output_tokens": 620,
}  # fmt: skip
_ZERO = {"retest_sessions": 0, "cut_chars": 0, "cut_interactions": 0}
EXAMPLE_NEW = dict.fromkeys(EXAMPLE_SCORE) | _ASKED | {"status": "pending"} | _ZERO


class Body(BaseModel):
    """A request's body; fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Error(BaseModel):
    """Why something was not done."""

    detail: str


class NamedTool(BaseModel):
    """A tool that the judge missed, or wished to be better."""

    tool_name: str
    rationale: str | None
    kind: Annotated[ToolKind | None, Field(description="Null where the judge's answer does not tell kinds apart.")]


class Brief(BaseModel):
    """A scoring as lists show it."""

    score_id: str
    status: Status
    total_score: Annotated[int, Field(ge=0, le=100)] | None
    current_prompt_used: bool
    phase: Phase | None
    error_message: str | None
    score_triggered_by: str | None
    scored_at_us: Annotated[Micros | None, Field(description="When it was asked for.")]
    started_at_us: Annotated[Micros | None, Field(description="When it began; null while it waits.")]
    completed_at_us: Annotated[Micros | None, Field(description="When it ended.")]


class Score(Brief):
    """A scoring of a session. `prompt_hash` is the hash of the criteria it was made under."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_SCORE, EXAMPLE_NEW]})

    session_id: str
    prompt_hash: str
    score_analysis: str | None
    missing_tools_analysis: str | None
    judge_words: Annotated[str | None, Field(description="What the judge of a failed scoring said.")]
    judge: str
    fallback_for: Annotated[str | None, Field(description="The judge that was asked first and could not answer.")]
    replicate: int
    flow_run_id: str | None
    retest_std: Annotated[
        float | None,
        Field(description="Deviation of one session's repeated scores, by this judge and these criteria, in points."),
    ]
    retest_sessions: Annotated[int, Field(description="The sessions that were scored again, which it is pooled over.")]
    logical_flow: Points | None
    consistency: Points | None
    tool_relevance: Points | None
    synthesis_quality: Points | None
    breakdown_consistent: bool | None
    failure_tags: list[str] | None
    missing_tools: list[NamedTool] | None
    tools_to_improve: list[NamedTool] | None
    cut_chars: int
    cut_interactions: int
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None


class Rating(BaseModel):
    """A person's rating of the investigation, or TARSy's own score or reviewers' rating."""

    session_id: str
    score_id: str | None
    score: float | None
    quality_rating: Literal["inaccurate", "partially_accurate", "accurate"] | None = None
    note: str | None
    rated_by: str
    rated_at_us: Micros


class Entry(BaseModel):
    """A session as the list shows it."""

    session_id: str
    session_status: SessionStatus
    alert_type: str | None
    agent: str
    started_at_us: Micros | None
    completed_at_us: Micros | None
    tool_calls: int
    score: Brief | None


class Detail(Entry):
    """A session whole."""

    score: Score | None
    alert: str
    runbook: str | None
    final_analysis: str | None
    summary: str | None
    error: str | None
    stages: list[Stage]
    human_ratings: list[Rating]


def micros(at: datetime | None) -> int | None:
    """Convert a time to microseconds since 1970."""
    return None if at is None else round(at.timestamp() * 1_000_000)


def brief(row: Row, phase: str, *, is_current: bool) -> dict[str, Any]:
    """Convert a row of `session_scores` to the form of lists. `phase` counts only while it is in progress."""
    return {
        **{name: row[name] for name in ("score_id", "status", "total_score", "error_message", "score_triggered_by")},
        "current_prompt_used": is_current,
        "phase": phase if row["status"] == "in_progress" else None,
        "scored_at_us": micros(row["asked_at"]),
        "started_at_us": micros(row["started_at"]),
        "completed_at_us": micros(row["completed_at"]),
    }


def score(
    row: Row,
    tools: Sequence[Row],
    phase: str,
    flow_run_id: str | None,
    retest: tuple[float | None, int] = (None, 0),
    *,
    is_current: bool,
) -> dict[str, Any]:
    """Convert a row of `session_scores` to the form of the API; `tools` are those that it names, in their order."""
    names, explained = row["missing_tools"], {tool["tool_name"] for tool in tools}
    named = [
        *tools,
        *({"tool_name": name, "rationale": None, "kind": None} for name in names or () if name not in explained),
    ]
    return {
        **{name: row[name] for name in Score.model_fields if name in row},
        **brief(row, phase, is_current=is_current),
        "prompt_hash": row["criteria_hash"],
        **(dict.fromkeys(("score_analysis", "missing_tools_analysis")) if row["status"] == "failed" else {}),
        "judge_words": row["score_analysis"] if row["status"] == "failed" else None,
        "flow_run_id": flow_run_id,
        "retest_std": retest[0],
        "retest_sessions": retest[1],
        "missing_tools": None if names is None else [tool for tool in named if tool["kind"] != IMPROVABLE],
        "tools_to_improve": None if names is None else [tool for tool in named if tool["kind"] == IMPROVABLE],
    }


# The list of sessions: which ones, in which order, which page.

Sort = Literal[
    "session", "alert_type", "agent", "session_status", "time", "duration", "tool_calls",
    "status", "score", "asked_at", "scored_at", "scored_by",
]  # fmt: skip
Time = Annotated[int, Field(ge=0, lt=2**62)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Name = Annotated[str, Field(max_length=1000)]

CHOICES = 500  # of each kind at most, that a reader may choose from


class Wanted(BaseModel):
    """The parameters of the list."""

    model_config = ConfigDict(extra="forbid")

    status: list[Status | Literal["not_scored"]] = Field(
        default_factory=list, description="Of the newest scoring; may be repeated."
    )
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
    """The filter values of the sessions, in alphabetical order."""

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
    with_value = sorted(
        (each for each in keyed if each[0] is not None), key=lambda each: each[0], reverse=wanted.order == "desc"
    )
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
        (_seconds(known), wanted.min_seconds, wanted.max_seconds),
        (known.tool_calls, wanted.min_tool_calls, wanted.max_tool_calls),
    )
    return (
        all(not names or value in names for value, names in chosen)
        and all(_is_within(*each) for each in ranges)
        and (
            wanted.criteria is None
            or (newest is not None and state.is_current(newest) == (wanted.criteria == "current"))
        )
        and wanted.search.casefold() in known.searched
    )


def _is_within(value: float | None, first: float | None, last: float | None) -> bool:
    if first is None and last is None:
        return True
    return value is not None and (first is None or value >= first) and (last is None or value <= last)


def _seconds(known: Known) -> float | None:
    if known.started_at_us is None or known.completed_at_us is None:
        return None
    return (known.completed_at_us - known.started_at_us) / 1_000_000


_OF_SESSION: Mapping[str, Callable[[Known], Any]] = {
    "session": lambda known: known.session_id.casefold(),
    "alert_type": lambda known: known.alert_type and known.alert_type.casefold(),
    "agent": lambda known: known.agent.casefold(),
    "session_status": lambda known: known.session_status,
    "time": lambda known: known.started_at_us,
    "duration": _seconds,
    "tool_calls": lambda known: known.tool_calls,
}
_OF_SCORING = {"score": "total_score", "scored_at": "completed_at", "scored_by": "score_triggered_by"}


def _sort_key(entry: Found, wanted: Wanted) -> Any:
    known, newest = entry
    if wanted.sort in _OF_SESSION:
        return _OF_SESSION[wanted.sort](known)
    return None if newest is None else newest[_OF_SCORING.get(wanted.sort, wanted.sort)]
