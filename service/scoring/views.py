"""What the API says of a scoring, a session, a rating: the shapes, with examples, and how rows become them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.scoring.sessions import Known
from suites.session_review.replies.missing_tools import IMPROVABLE
from suites.session_review.session import Session, Stage

Status = Literal["pending", "in_progress", "completed", "failed"]
SessionStatus = Literal["completed", "failed", "cancelled", "timed_out"]
Phase = Literal["analyzing_methodology", "identifying_missing_tools"]
ToolKind = Literal["unused", "absent", "improvable"]
Points = Annotated[int, Field(ge=0, le=25)]
Micros = Annotated[int, Field(description="Microseconds since 1970 (UTC)")]

EXAMPLE_HASH = "5f0c2c8f6a0ad2d09d1ff3b3f8f0f4b4b7b1b2d7b6a7c0a4d8e4f1b0c3d2e1f0"
EXAMPLE_SCORE: dict[str, Any] = {
    "score_id": EXAMPLE_HASH,
    "session_id": "checkout-pool-exhausted",
    "status": "completed",
    "prompt_hash": EXAMPLE_HASH[::-1],
    "total_score": 62,
    "score_analysis": "Logical flow: 16/25. The agent named the pool before it had looked at its limits. …",
    "missing_tools_analysis": "1. **pg-stat-activity**: it would have shown who holds the connections.",
    "error_message": None,
    "score_triggered_by": "alice",
    "scored_at_us": 1795293066282806,
    "started_at_us": 1795293066294112,
    "completed_at_us": 1795293066348446,
    "current_prompt_used": True,
    "phase": None,
    "judge": "baseline/rubric-judge",
    "replicate": 0,
    "flow_run_id": "0197f8a2-5f2c-7c4e-9d55-7d1f6f0b8a11",
    "logical_flow": 16,
    "consistency": 15,
    "tool_relevance": 15,
    "synthesis_quality": 16,
    "breakdown_consistent": True,
    "failure_tags": ["premature_conclusion"],
    "missing_tools": [
        {
            "tool_name": "pg-stat-activity",
            "rationale": "it would have shown who holds the connections",
            "kind": "absent",
        }
    ],
    "tools_to_improve": [],
    "cut_chars": 0,
    "cut_interactions": 0,
    "cost_usd": 0.0,
    "input_tokens": 4100,
    "output_tokens": 620,
}
EXAMPLE_NEW: dict[str, Any] = {
    **dict.fromkeys(EXAMPLE_SCORE),
    **{name: EXAMPLE_SCORE[name] for name in ("score_id", "session_id", "prompt_hash", "score_triggered_by")},
    **{name: EXAMPLE_SCORE[name] for name in ("scored_at_us", "current_prompt_used", "judge", "replicate")},
    **{"status": "pending", "cut_chars": 0, "cut_interactions": 0, "flow_run_id": EXAMPLE_SCORE["flow_run_id"]},
}


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
    judge: str
    replicate: int
    flow_run_id: str | None
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
    """What a person gave the investigation."""

    session_id: str
    score_id: str | None
    score: float | None
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


def brief(row: Mapping[str, Any], phase: str | None, *, is_current: bool) -> dict[str, Any]:
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
    row: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]],
    phase: str | None,
    flow_run_id: str | None,
    *,
    is_current: bool,
) -> dict[str, Any]:
    """Convert a row of `session_scores` to the form of the API; `tools` are those that it names, in their order."""
    shared = [name for name in Score.model_fields if name in row and name != "missing_tools"]
    missing = row["missing_tools"]
    explained = {tool["tool_name"] for tool in tools}
    unexplained = [
        {"tool_name": each, "rationale": None, "kind": None} for each in missing or () if each not in explained
    ]
    named = [*tools, *unexplained]
    return {
        **{name: row[name] for name in shared},
        **brief(row, phase, is_current=is_current),
        "prompt_hash": row["criteria_hash"],
        **(dict.fromkeys(("score_analysis", "missing_tools_analysis")) if row["status"] == "failed" else {}),
        "flow_run_id": flow_run_id,
        "missing_tools": None if missing is None else [tool for tool in named if tool["kind"] != IMPROVABLE],
        "tools_to_improve": None if missing is None else [tool for tool in named if tool["kind"] == IMPROVABLE],
    }


def entry(known: Known, score: Mapping[str, Any] | None) -> dict[str, Any]:
    """Build the entry of a session in the list, with its newest scoring in the form of lists."""
    return {name: getattr(known, name) for name in Entry.model_fields if name != "score"} | {"score": score}


def conversation(session: Session) -> dict[str, Any]:
    """Collect what a session page shows beside the entry."""
    names = ("alert", "runbook", "final_analysis", "summary", "error", "stages")
    return {name: getattr(session, name) for name in names}
