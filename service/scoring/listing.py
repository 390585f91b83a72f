"""The list of sessions: which ones, in which order, which page."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from service.scoring.scorings import State
from service.scoring.sessions import Known
from service.scoring.views import Entry
from suites.session_review.prompts import criteria_hash

Status = Literal["not_scored", "pending", "in_progress", "completed", "failed"]
Time = Annotated[int, Field(ge=0, lt=2**62)]


class Wanted(BaseModel):
    """The parameters of the list."""

    model_config = ConfigDict(extra="ignore")

    status: list[Status] = Field(default_factory=list, description="Of the newest scoring; may be repeated.")
    min_score: Annotated[int, Field(ge=0, le=100)] | None = None
    max_score: Annotated[int, Field(ge=0, le=100)] | None = None
    criteria: Literal["current", "obsolete"] | None = Field(None, description="Those that the score was made under.")
    from_us: Time | None = Field(None, description="Only sessions that began then or later.")
    to_us: Time | None = Field(None, description="Only sessions that began then or earlier.")
    search: Annotated[str, Field(max_length=200)] = Field("", description="Text in id, alert type, agent or alert.")
    sort: Literal["time", "score", "scored_at"] = "time"
    order: Literal["asc", "desc"] = "desc"
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Field(ge=1, le=200)] = 25


WantedQuery = Annotated[Wanted, Query()]


class SessionPage(BaseModel):
    """Some of the sessions."""

    sessions: list[Entry]
    page: int
    page_size: int
    total: int
    pages: int


Found = tuple[Known, dict[str, Any] | None]  # a session and its newest scoring


def matching(sessions: Iterable[Known], state: State, wanted: Wanted) -> list[Found]:
    """The sessions that are wanted, in order; those without a value to sort by come last."""
    found = [(known, newest) for known in sessions if _matches(known, newest := state.newest(known.session_id), wanted)]
    keyed = [(_sort_key(each, wanted), each[0].session_id, each) for each in found]
    told = sorted((entry for entry in keyed if entry[0] is not None), key=lambda entry: entry[1])
    told.sort(key=lambda entry: entry[0], reverse=wanted.order == "desc")
    untold = sorted((entry for entry in keyed if entry[0] is None), key=lambda entry: entry[1])
    return [entry[2] for entry in (*told, *untold)]


def _matches(known: Known, newest: Mapping[str, Any] | None, wanted: Wanted) -> bool:
    status = "not_scored" if newest is None else newest["status"]
    total = None if newest is None else newest["total_score"]
    if wanted.status and status not in wanted.status:
        return False
    if wanted.min_score is not None and (total is None or total < wanted.min_score):
        return False
    if wanted.max_score is not None and (total is None or total > wanted.max_score):
        return False
    if wanted.criteria is not None:
        is_current = newest is not None and newest["criteria_hash"] == criteria_hash()
        if newest is None or is_current != (wanted.criteria == "current"):
            return False
    if not _began_between(known.started_at_us, wanted.from_us, wanted.to_us):
        return False
    return wanted.search.casefold() in known.searched


def _began_between(at: int | None, first: int | None, last: int | None) -> bool:
    if first is None and last is None:
        return True
    return at is not None and (first is None or at >= first) and (last is None or at <= last)


def _sort_key(found: Found, wanted: Wanted) -> Any:
    known, newest = found
    if wanted.sort == "time":
        return known.started_at_us
    if newest is None:
        return None
    return newest["total_score"] if wanted.sort == "score" else newest["completed_at"]
