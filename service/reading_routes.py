"""Routes that only read: sessions, runs and metrics of every suite, and what the service is."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from service.addresses import SESSION
from service.desk import DeskHere, User
from service.listing import SessionPage, WantedQuery, matching
from service.overview import Metrics, RunPage, metric_history, run_page
from service.scoring_routes import SessionId, errors
from service.views import Detail
from suites.session_review.prompts import criteria_hash
from tasks.context import CODE_VERSION

router = APIRouter(prefix="/api/v1", tags=["reading"])

Name = Annotated[str | None, Query(max_length=200)]


class StatusView(BaseModel):
    """What this service is, and who is asking it."""

    version: str
    user: str
    judge: str
    criteria_hash: str
    prefect_url: str | None
    draining: bool


@router.get("/status", response_model=StatusView, responses=errors(401, 500))
def read_status(desk: DeskHere, user: User) -> dict[str, Any]:
    """Version, judge, current criteria, where Prefect's pages are, and who is asking."""
    return {
        "version": CODE_VERSION,
        "user": user,
        "judge": desk.settings.judge,
        "criteria_hash": criteria_hash(),
        "prefect_url": desk.gate.pages,
        "draining": desk.scorings.draining,
    }


@router.get("/sessions", response_model=SessionPage, responses=errors(401, 500))
def read_sessions(desk: DeskHere, user: User, wanted: WantedQuery) -> dict[str, Any]:
    """The sessions, filtered, sorted, and a page at a time."""
    found = matching(desk.sessions.all().values(), desk.scorings.state(), wanted)
    start = (wanted.page - 1) * wanted.page_size
    return {
        "sessions": [desk.entry(known, newest) for known, newest in found[start : start + wanted.page_size]],
        "page": wanted.page,
        "page_size": wanted.page_size,
        "total": len(found),
        "pages": -(-len(found) // wanted.page_size),
    }


@router.get(SESSION, response_model=Detail, responses=errors(400, 401, 404, 500))
def read_session(session_id: SessionId, desk: DeskHere, user: User) -> Detail:
    """A session whole: alert, conversation, final analysis, newest score and people's ratings."""
    return desk.detail(desk.sessions.find(session_id))


@router.get("/runs", response_model=RunPage, responses=errors(401, 500))
def read_runs(
    desk: DeskHere,
    user: User,
    suite: Name = None,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    page_size: Annotated[int, Query(ge=1, le=200)] = 25,
) -> RunPage:
    """The runs of every suite, newest first."""
    return run_page(desk.settings.lake, suite, page, page_size)


@router.get("/metrics", response_model=Metrics, responses=errors(401, 500))
def read_metrics(
    desk: DeskHere,
    user: User,
    suite: Name = None,
    metric: Annotated[list[str] | None, Query(max_length=50)] = None,
    slice_: Annotated[str, Query(alias="slice", max_length=200)] = "all",
    run_id: Name = None,
) -> Metrics:
    """Metric values of all snapshots, oldest first."""
    return metric_history(desk.settings.lake, suite, metric or (), slice_, run_id)
