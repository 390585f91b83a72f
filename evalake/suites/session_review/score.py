"""A session and what its judge answered -> its row of `session_scores`, and one row for every missing tool."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalake.contracts.contract import Row
from evalake.core.configuration import UNKNOWN
from evalake.core.hashing import content_hash
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item
from evalake.sdk.results import asked_columns, reply_columns
from evalake.suites.session_review import prompts
from evalake.suites.session_review.contract import MISSING_TOOLS, PROVISIONAL_KINDS, RESULTS
from evalake.suites.session_review.replies import (
    ATTEMPTS,
    FirstTurn,
    MissingTool,
    missed,
    read_failure_tags,
    read_first_turn,
    read_missing_tools,
)
from evalake.suites.session_review.session import load
from evalake.suites.session_review.sources.generic import text as storable

SCORER_VERSION = "5"
NO_TOTAL = "no_total"

_OF_THE_API = dict.fromkeys(("score_triggered_by", "asked_at", "started_at", "completed_at", "fallback_for"))


def score_id(
    sample_hash: str, prompt_hash: str, replicate: int, criteria: str | None = None, endpoint: str = UNKNOWN
) -> str:
    """Compute the identity of one scoring: of this session, by this judge with these parameters, under these criteria.

    Without `criteria` they are the current ones of the suite. An unknown endpoint is left out, as it was before
    endpoints were kept.
    """
    known = [] if endpoint == UNKNOWN else [endpoint]
    return content_hash(
        [sample_hash, prompt_hash, replicate, criteria or prompts.criteria_hash(), SCORER_VERSION, *known]
    )


def score(
    item: Item, answered: Sequence[Exchange], options: Mapping[str, Any] = prompts.OPTIONS
) -> Mapping[str, Sequence[Row]]:
    """Build the item's rows by table, without `landed_by_run` and `origin`, which are filled in where the rows land.

    A call of the first turn that was given up on gives a failed row where that says something about judge and session
    (it took too long, was refused, or the session was too long), and none where it does not (no key, no connection, …).
    A second turn that failed leaves the score as it is.
    """
    outcomes = [answer.outcome for answer in answered]
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    mode = prompts.total_mode(options, item.prompt_type)
    attempts = prompts.first_turn(replies, prompts.reads_total(options, item.prompt_type))
    cut_off = [place for place, reply in enumerate(attempts) if reply.is_cut_off]
    turn = read_first_turn([reply.text for reply in attempts], mode, cut_off)
    failure = next((outcome for outcome in outcomes if isinstance(outcome, Failure)), None)
    if turn.total is None and failure is not None and failure.kind not in PROVISIONAL_KINDS:
        return {}
    if turn.total is None and failure is None and len(attempts) < ATTEMPTS:
        return {}  # the conversation is not over
    second = replies[len(attempts)] if len(replies) > len(attempts) else Reply(None)
    missing = read_missing_tools(storable(second.text))
    row = {
        **_of_item(item, answered, options),
        **_of_turn(turn, failure, len(attempts), cut_off=bool(cut_off)),
        **_of_cut(item, options),
        **reply_columns(*replies),
        "missing_tools": None if missing is None else missed(missing),
        "missing_tools_analysis": storable(second.text),
        **_OF_THE_API,
    }
    if second.is_cut_off:
        row["error_message"] = "the judge's list of missing tools was cut off: give it more max_tokens"
    return {RESULTS.table: [row], MISSING_TOOLS.table: [*_tool_rows(row, missing or ())]}


def begun(item: Item, asked: Exchange, options: Mapping[str, Any] = prompts.OPTIONS) -> Row:
    """Build the row of a scoring that waits for its first answer, without `landed_by_run` and `origin`."""
    return {
        **_of_item(item, [asked], options),
        **_of_turn(read_first_turn(()), None, 0),
        **_of_cut(item, options),
        **reply_columns(),
        **_OF_THE_API,
        **dict.fromkeys(("error_kind", "error_message", "missing_tools", "missing_tools_analysis")),
        "status": "pending",
    }


def _of_item(item: Item, answered: Sequence[Exchange], options: Mapping[str, Any]) -> dict[str, Any]:
    first = answered[0]
    session = load(item.sample.input)
    criteria = prompts.criteria_hash_of(options, item.prompt_type)
    return {
        **asked_columns(item, answered, SCORER_VERSION),
        "score_id": score_id(item.sample.sample_hash, first.prompt_hash, item.replicate, criteria, first.endpoint),
        "session_id": session.session_id,
        "session_status": session.status,
        "alert_type": session.alert_type,
        "agent": session.agent,
        "judge": item.judge,
        "prompt_hashes": [answer.prompt_hash for answer in answered],
        "criteria_hash": criteria,
    }


def _of_turn(turn: FirstTurn, failure: Failure | None, attempts: int, *, cut_off: bool = False) -> dict[str, Any]:
    is_scored = turn.total is not None
    kind, message = _why_not(failure, attempts, cut_off)
    if is_scored:
        kind, message = None, None if failure is None else f"the missing tools are not known: {message}"
    return {
        "status": "completed" if is_scored else "failed",
        "total_score": turn.total,
        **turn.categories,
        "breakdown_consistent": turn.breakdown_consistent,
        "failure_tags": None if turn.analysis is None else read_failure_tags(turn.analysis),
        "score_analysis": storable(turn.analysis),
        "attempts": attempts,
        "error_kind": kind,
        "error_message": message,
    }


def _why_not(failure: Failure | None, attempts: int, cut_off: bool) -> tuple[str | None, str | None]:
    if failure is None:
        why = "; it was cut off: give the judge more max_tokens" if cut_off else ""
        return NO_TOTAL, f"the judge's answer ended in no total, {attempts} times{why}"
    return failure.kind, f"the judge gave no answer: {failure.message}"


def _of_cut(item: Item, options: Mapping[str, Any]) -> dict[str, Any]:
    cut = prompts.fitted(load(item.sample.input), options, prompts.templates_of(options, item.prompt_type))
    return {"cut_chars": sum(cut.cut.values()), "cut_interactions": len(cut.cut)}


def _tool_rows(row: Row, missing: Sequence[MissingTool]) -> Sequence[Row]:
    shared = {name: row[name] for name in ("score_id", "session_id", "model", "judge")}
    return [
        {**shared, "position": position, "tool_name": tool.name, "rationale": tool.rationale or None, "kind": tool.kind}
        for position, tool in enumerate(missing, start=1)
    ]


# What a scoring goes through: its states and its phases.


ACTIVE = ("pending", "in_progress")
PHASES: Mapping[str, float] = {"analyzing_methodology": 10.0, "identifying_missing_tools": 60.0}
"""The phases of a scoring in their order, and the progress at which each begins."""

CANCELLED, LOST = "cancelled", "lost"
GIVEN_UP = (CANCELLED, LOST)  # kinds of errors of scorings that were ended from outside
ERROR = "error"  # the kind of a scoring whose process ended, or failed
DIED = (ERROR, LOST)


def lacks_second_turn(row: Row) -> bool:
    """Tell whether a scoring has a score, and its judge could not be asked for missing tools."""
    return row["status"] == "completed" and row["missing_tools_analysis"] is None and row["error_message"] is not None


def phase_at(progress: float) -> str:
    """Look up the phase that a progress is in."""
    return [phase for phase, begins in PHASES.items() if begins <= max(progress, 10.0)][-1]
