"""The tables of session_review: one scoring of one session, and one tool that a judge missed in one."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import ClassVar, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.contract import ENDPOINTS_OF_RESULTS, Added, Contract, Renamed, Rewritten, RowModel, with_text
from evalake.contracts.rule import Dimension, Kind, Rule, hash_rule, not_blank, not_negative
from evalake.sdk.results import LANDED_BY_RUN, ReplyColumns, ResultRow, replaced_when, result_rules
from evalake.sdk.suite import Outcomes
from evalake.suites.session_review.replies import ATTEMPTS, CATEGORIES, CATEGORY_POINTS

PROVISIONAL_KINDS = ("timeout", "content_policy", "context_length")
"""Kinds of failed calls that say something about judge and session: they fail the scoring until a rerun succeeds."""


class SessionScore(ResultRow, ReplyColumns):
    """One scoring of one session."""

    stands_after: ClassVar[Mapping[str, str]] = {
        "score_id": "",
        "session_id": "sample_hash",
        "session_status": "session_id",
        "alert_type": "session_status",
        "agent": "alert_type",
        "judge": "model",
        "prompt_hashes": "prompt_hash",
        "criteria_hash": "prompt_hashes",
    }

    score_id: str = Field(description="The scoring: SHA-256 over session, prompt, endpoint, replicate and criteria.")
    session_id: str = Field(description="The session, as the system that made it calls it.")
    session_status: Literal["completed", "failed", "cancelled", "timed_out"] = Field(description="How it ended.")
    alert_type: str | None = Field(description="The type of alert that was investigated; null where it is not told.")
    agent: str = Field(description="The agent, or chain of agents, that investigated.")
    judge: str = Field(description="The model that scored the session, as the run names it.")
    prompt_hashes: list[str] = Field(description="The prompt hashes of all requests, in order.")
    criteria_hash: str = Field(
        description="SHA-256 over the judge's prompt templates and the version of what fills them."
    )
    status: Literal["pending", "in_progress", "completed", "failed"] = Field(description="How far the scoring is.")
    total_score: int | None = Field(description="The score, 0 to 100; null unless the scoring is completed.")
    logical_flow: int | None = Field(description="Points for logical flow, 0 to 25; null where they cannot be read.")
    consistency: int | None = Field(description="Points for consistency, 0 to 25; null where they cannot be read.")
    tool_relevance: int | None = Field(description="Points for tool relevance, 0 to 25; null where unread.")
    synthesis_quality: int | None = Field(description="Points for synthesis quality, 0 to 25; null where unread.")
    breakdown_consistent: bool | None = Field(description="Whether the four add up to the total; null where unknown.")
    failure_tags: list[str] | None = Field(description="Patterns of failure found; null: not looked for, []: none.")
    score_analysis: str | None = Field(description="The judge's analysis, without the total.")
    missing_tools: list[str] | None = Field(description="Names of missing tools; null: not known, []: none.")
    missing_tools_analysis: str | None = Field(description="The judge's second answer; null where it gave none.")
    attempts: int = Field(description="Answers of the first turn, reminders included.")
    cut_chars: int = Field(description="Characters of the session that were cut to fit the judge's context.")
    cut_interactions: int = Field(description="Interactions of which something was cut; runbook and tools are one.")
    error_kind: str | None = Field(description="Why the scoring failed, as a fixed word, like no_total or timeout.")
    error_message: str | None = Field(
        description="Why the scoring failed, in words; of a completed one, why its missing tools are not known."
    )
    score_triggered_by: str | None = Field(description="Who asked for it through the scoring API; null in a run.")
    asked_at: datetime | None = Field(description="When it was asked for; null where not through the scoring API.")
    started_at: datetime | None = Field(description="When it began; null where it has not, or not through the API.")
    completed_at: datetime | None = Field(description="When it ended; null where it has not, or not through the API.")
    fallback_for: str | None = Field(
        description="The judge that was asked first and could not answer; null where `judge` was asked first."
    )


class SessionMissingTool(RowModel):
    """One tool that a judge missed, or wished to be better, in one session."""

    score_id: str = Field(description="The scoring.")
    position: int = Field(description="Its place in the judge's list, from 1.")
    landed_by_run: str = Field(description="The run that landed the row first.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    session_id: str = Field(description="The session.")
    model: str = Field(description="The subject, as in session_scores.")
    judge: str = Field(description="The model that scored the session.")
    tool_name: str = Field(description="The tool's name in lower case with hyphens.")
    rationale: str | None = Field(description="How it would have changed the analysis; null where nothing is said.")
    kind: Literal["unused", "absent", "improvable"] | None = Field(
        description="Available and not used, not there at all, or there and to be improved; null where it is not said."
    )


def _when_status(rule_id: str, column: str, kind: Kind, *statuses: str) -> Rule:
    return Rule(rule_id, column, kind, {"other": "status", "values": statuses}, dimension=Dimension.CONSISTENCY)


def _between(column: str, lowest: int, highest: int) -> Rule:
    return Rule(f"{column}_in_range", column, Kind.BETWEEN, {"minimum": lowest, "maximum": highest})


# A scoring goes on from pending to its end and never back; one that waits may be asked otherwise. A failed one is
# mended where a call had failed, not the judge; a completed one only gains the missing tools that its first run could
# not get.
_REPLACED_WHEN = " OR ".join(
    (
        "(old.status = 'pending' AND new.status <> 'pending')",
        "(old.status = 'pending' AND new.status = 'pending' AND old.prompt_hash <> new.prompt_hash)",
        "(old.status = 'in_progress' AND new.status IN ('completed', 'failed'))",
        f"(old.status = 'failed' AND new.status = 'completed' AND old.error_kind IN {PROVISIONAL_KINDS})",
        "(old.status = 'completed' AND new.status = 'completed' AND old.missing_tools_analysis IS NULL"
        " AND new.missing_tools_analysis IS NOT NULL)",
    )
)

RESULTS = Contract(
    "session_scores",
    SessionScore,
    ("score_id",),
    "One scoring of one session: how good the agent's investigation was, in the judge's words and in points.",
    (
        hash_rule("score_id"),
        hash_rule("criteria_hash"),
        *result_rules(SessionScore),
        not_blank("session_id"),
        not_blank("agent"),
        not_blank("alert_type"),
        not_negative("cut_chars"),
        not_negative("cut_interactions"),
        _between("total_score", 0, 100),
        *(_between(category, 0, CATEGORY_POINTS) for category in CATEGORIES),
        _between("attempts", 0, ATTEMPTS),
        _when_status("completed_has_total", "total_score", Kind.PRESENT_WHEN, "completed"),
        _when_status("total_only_when_completed", "total_score", Kind.ABSENT_WHEN, "pending", "in_progress", "failed"),
        _when_status("failed_says_why", "error_message", Kind.PRESENT_WHEN, "failed"),
        _when_status("no_error_before_its_end", "error_message", Kind.ABSENT_WHEN, "pending", "in_progress"),
        Rule("starts_after_asked", "asked_at", Kind.NOT_ABOVE, {"other": "started_at"}),
        Rule("ends_after_start", "started_at", Kind.NOT_ABOVE, {"other": "completed_at"}),
    ),
    replaced_when=replaced_when(_REPLACED_WHEN),
    changes=(
        Renamed(columns={"started_at": "asked_at"}),
        Added(("started_at",)),
        LANDED_BY_RUN,
        ENDPOINTS_OF_RESULTS,
        Rewritten(
            "names the judge that another stood in for; a completed scoring may have an error",
            partial(with_text, column="fallback_for"),
        ),
    ),
    suite="session_review",
)

MISSING_TOOLS = Contract(
    "session_missing_tools",
    SessionMissingTool,
    ("score_id", "position"),
    "The tools that a judge missed in a session, or wished to be better, one row each, so that SQL can count them.",
    (hash_rule("score_id"), not_blank("session_id"), not_blank("tool_name"), not_negative("position")),
    changes=(Added(("kind",)), LANDED_BY_RUN),
)

CONTRACTS = (RESULTS, MISSING_TOOLS)

OUTCOMES = Outcomes(missing=pl.when(pl.col("status") != "completed").then(pl.coalesce("error_kind", "status")))
