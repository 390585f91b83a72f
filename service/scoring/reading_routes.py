"""Routes that only read: sessions, and what the service is."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from service.scoring.addresses import SESSION
from service.scoring.app_state import AppStateHere, User
from service.scoring.listing import SessionPage, WantedQuery, choices, matching
from service.scoring.routes import SessionId, errors
from service.scoring.sources import SourceView
from service.scoring.views import Detail
from tasks.runtime.context import CODE_VERSION

router = APIRouter(prefix="/api/v1", tags=["reading"])


class StatusView(BaseModel):
    """What this service is, and who is asking it."""

    version: str
    user: str
    judge: str
    criteria_hash: str
    prefect_url: str | None
    draining: bool
    sources: list[SourceView]


@router.get("/status", response_model=StatusView, responses=errors(401, 500))
def read_status(app_state: AppStateHere, user: User) -> dict[str, Any]:
    """Read the version, the judge, the current criteria, where Prefect's pages are, and who is asking."""
    return {
        "version": CODE_VERSION,
        "user": user,
        "judge": app_state.settings.judge,
        "criteria_hash": app_state.settings.criteria,
        "prefect_url": app_state.gateway.pages,
        "draining": app_state.scorings.draining,
        "sources": app_state.sessions.sources,
    }


@router.get("/sessions", response_model=SessionPage, responses=errors(401, 500))
def read_sessions(app_state: AppStateHere, user: User, wanted: WantedQuery) -> dict[str, Any]:
    """List the sessions, filtered, sorted, and a page at a time."""
    sessions, state = app_state.sessions.all().values(), app_state.scorings.state()
    listed = matching(sessions, state, wanted)
    start = (wanted.page - 1) * wanted.page_size
    return {
        "sessions": [app_state.entry(known, newest) for known, newest in listed[start : start + wanted.page_size]],
        "page": wanted.page,
        "page_size": wanted.page_size,
        "total": len(listed),
        "pages": -(-len(listed) // wanted.page_size),
        "choices": choices(sessions, state),
    }


@router.get(SESSION, response_model=Detail, responses=errors(400, 401, 404, 500))
def read_session(session_id: SessionId, app_state: AppStateHere, user: User) -> Detail:
    """Read a session whole: alert, conversation, final analysis, newest score and people's ratings."""
    return app_state.detail(app_state.sessions.find(session_id))
