"""Routes of the scoring API, and the state that they use: scores, ratings, statistics, sessions and the service."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Response
from pydantic import BaseModel, Field, StrictBool, model_validator
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import HTTPConnection

from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.server.scoring import views
from evalake.server.scoring.events import Watch
from evalake.server.scoring.queue import Queue
from evalake.server.scoring.scorings import Completions, Scorings, ScoringSettings, State
from evalake.server.scoring.sessions import Known, Sessions, SourceView
from evalake.server.scoring.statistics import Ratings, RoadmapView, Statistics, read_newest, statistics
from evalake.server.settings import ApiError
from evalake.server.viewer.access import KNOWN_QUERY, in_state
from evalake.suites.session_review.score import ACTIVE
from evalake.tasks.runtime.context import CODE_VERSION

SHOWN = ("alert", "runbook", "final_analysis", "summary", "error", "stages")  # of a session, on its page


class AppState:
    """The parts of the service."""

    def __init__(self, settings: ScoringSettings) -> None:
        service, self.settings = settings.configuration.service, settings
        self.sessions = Sessions(settings.lake, settings.sources, scores_new=service.score_on_completion)
        self.ratings = Ratings(settings.lake)
        self.queue = Queue(settings.lake.uri, settings.configuration_file, service.scorings_at_once)
        self.scorings = Scorings(settings, self.sessions, self.queue)
        self.watch = Watch(self.scorings, self.queue, service.lost_after_seconds)
        self.completions = Completions(self.scorings, self.sessions, service)

    async def drain(self) -> None:
        """Wait for running scorings, fail those that take too long, and announce the ends."""
        await asyncio.to_thread(self.queue.drain, self.settings.configuration.service.drain_seconds)
        await self.watch.tell()
        await self.watch.hub.sent()

    def score(self, row: Row, state: State | None = None) -> dict[str, Any]:
        """Convert the row of a scoring to the form of the API."""
        state, score_id = state or self.scorings.state(), row["score_id"]
        tools, is_current = state.tools.get(score_id, ()), state.is_current(row)
        retest = state.deviations.get((row["judge"], row["criteria_hash"]), (None, 0))
        phase, flow_run_id = self.watch.phase(score_id), self.queue.flow_run_of(row)
        return views.score(row, tools, phase, flow_run_id, retest, is_current=is_current)

    def entry(self, known: Known, newest: Row | None) -> dict[str, Any]:
        """Build the entry of a session in the list."""
        fields = {name: getattr(known, name) for name in views.Entry.model_fields if name != "score"}
        if newest is None:
            return {**fields, "score": None}
        is_current = newest["criteria_hash"] == self.settings.criteria
        return {**fields, "score": views.brief(newest, self.watch.phase(newest["score_id"]), is_current=is_current)}

    def detail(self, known: Known) -> views.Detail:
        """Build the whole description of a session."""
        state, session = self.scorings.state(), self.sessions.session(known)
        newest = state.newest(known.session_id)
        fields = {
            **self.entry(known, newest),
            **{name: getattr(session, name) for name in SHOWN},
            "score": None if newest is None else self.score(newest, state),
            "human_ratings": self.ratings.of(known.session_id, state),
        }
        return views.Detail(**fields)


AppStateHere = Annotated[AppState, in_state("app_state")]


def user_of(connection: HTTPConnection) -> str:
    """Look up the user of a request, as access control found it."""
    user: str = connection.state.user
    return user


User = Annotated[str, Depends(user_of)]


class SessionIdConvertor(PathConvertor):
    """A convertor for session ids: Starlette's own `path` ends at a line break, and its `str` at a slash."""

    regex = r"[\s\S]+"


register_url_convertor("session", SessionIdConvertor())

SESSION = "/sessions/{session_id:session}"

router = APIRouter(prefix="/api/v1/scoring", tags=["scoring"], dependencies=[KNOWN_QUERY])
reading = APIRouter(prefix="/api/v1", tags=["reading"], dependencies=[KNOWN_QUERY])

SessionId = Annotated[str, Path(description="The session, as the system that made it calls it", max_length=1000)]

_REASONS = {
    400: ("The session is not over.", "the session 'x' is not over: only sessions that are can be scored"),
    401: ("Not allowed.", "not allowed: come by way of a trusted proxy, or with the token"),
    404: ("Unknown session, or never scored.", "there is no session 'x'"),
    409: (
        "A scoring is under way or, to be cancelled, over.",
        "a scoring is in_progress already: wait for its end before asking for another",
    ),
    500: ("Something failed.", "Prefect did not let the service submit a scoring: connection refused"),
    503: ("The service is shutting down.", "the service is shutting down and starts no new scoring"),
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the error answers of a route, for OpenAPI."""
    return {
        status: {
            "model": views.Error,
            "description": _REASONS[status][0],
            "content": {"application/json": {"example": {"detail": _REASONS[status][1]}}},
        }
        for status in statuses
    }


def _example(description: str, example: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"example": dict(example)}}
    return {"model": views.Score, "description": description, "content": content}


class ScoreRequest(views.Body):
    """A request to score a session: again, or only for the missing tools that its score lacks."""

    force_rescore: StrictBool = False
    missing_tools_only: StrictBool = False

    @model_validator(mode="after")
    def _one_of_them(self) -> "ScoreRequest":
        if self.force_rescore and self.missing_tools_only:
            raise ValueError("give force_rescore or missing_tools_only")
        return self


class BatchRequest(views.Body):
    """The sessions to score: some by id, all that were never scored, or all with obsolete criteria."""

    session_ids: (
        Annotated[list[Annotated[str, Field(max_length=1000)]], Field(min_length=1, max_length=1000)] | None
    ) = None
    not_scored: StrictBool = False
    obsolete: StrictBool = False
    force_rescore: StrictBool = False

    @model_validator(mode="after")
    def _one_of_them(self) -> "BatchRequest":
        if [self.session_ids is not None, self.not_scored, self.obsolete].count(True) != 1:
            raise ValueError("give session_ids, not_scored: true, or obsolete: true")
        return self


BATCHES = [{"session_ids": ["a", "b"], "force_rescore": False}, {"not_scored": True}, {"obsolete": True}]


class EstimateAnswer(BaseModel):
    """The estimated calls of the judge and their cost for some sessions; null if the price is unknown."""

    sessions: int
    calls: int
    usd_low: float | None
    usd_high: float | None
    judge: str


class Refusal(BaseModel):
    """A refused session of a batch, with the answer that a single request would get."""

    session_id: str
    status: int
    detail: str


class BatchAnswer(BaseModel):
    """The outcome of each session of a batch."""

    accepted: list[views.Score]
    existing: list[views.Score]
    refused: list[Refusal]


class History(BaseModel):
    """All scorings of a session, newest first."""

    session_id: str
    scores: list[views.Score]


class RatingRequest(views.Body):
    """A person's rating, on the judge's scale."""

    score: Annotated[float, Field(ge=0, le=100, strict=False, allow_inf_nan=False)]
    note: Annotated[str, Field(max_length=10_000)] | None = None


class RatingList(BaseModel):
    """The ratings of a session, newest first."""

    session_id: str
    ratings: list[views.Rating]


class StatusView(BaseModel):
    """The service's version and state, and the user."""

    version: str
    user: str
    judge: str
    criteria_hash: str
    prefect_url: str | None
    draining: bool
    sources: list[SourceView]


@router.post(
    f"{SESSION}/score",
    response_model=views.Score,
    responses={
        200: _example("The scoring that is there already, completed or failed.", views.EXAMPLE_SCORE),
        202: _example("A new scoring, or one that is under way.", views.EXAMPLE_NEW),
        **errors(400, 401, 404, 409, 500, 503),
    },
)
def ask_for_score(
    session_id: SessionId,
    app_state: AppStateHere,
    user: User,
    response: Response,
    body: Annotated[ScoreRequest | None, Body(examples=[{"force_rescore": False}])] = None,
) -> dict[str, Any]:
    """Score a session, unless it has a score or is being scored; with `force_rescore` score it again.

    With `missing_tools_only` the judge is asked for missing tools alone, where it had given a score and no more.
    """
    if body is not None and body.missing_tools_only:
        row, is_asked = app_state.scorings.second_turn(session_id)
        response.status_code = 202 if is_asked else 200
        return app_state.score(row)
    decision = app_state.scorings.request(session_id, user, force=body is not None and body.force_rescore)
    response.status_code = 202 if decision.row["status"] in ACTIVE else 200
    return app_state.score(decision.row)


@router.get(f"{SESSION}/score", response_model=views.Score, responses=errors(401, 404, 500))
def read_score(session_id: SessionId, app_state: AppStateHere, user: User) -> dict[str, Any]:
    """Read the newest score of a session: one that is under way, or the last one that ended."""
    return app_state.score(app_state.scorings.state().scored(session_id))


@router.post(f"{SESSION}/cancel", response_model=views.Score, responses=errors(401, 404, 409, 500))
def cancel(session_id: SessionId, app_state: AppStateHere, user: User) -> dict[str, Any]:
    """End the running scoring as failed; later results of its process do not count."""
    return app_state.score(app_state.scorings.cancel(session_id, user))


@router.get(f"{SESSION}/history", response_model=History, responses=errors(400, 401, 404, 500))
def read_history(session_id: SessionId, app_state: AppStateHere, user: User) -> dict[str, Any]:
    """List all scorings of a session, newest first."""
    state = app_state.scorings.state()
    rows = state.by_session.get(session_id, ())
    if not rows:
        app_state.sessions.find(session_id)
    return {"session_id": session_id, "scores": [app_state.score(row, state) for row in reversed(rows)]}


@router.post("/batch", status_code=202, response_model=BatchAnswer, responses=errors(401, 500, 503))
def ask_for_scores(
    app_state: AppStateHere,
    user: User,
    body: Annotated[BatchRequest, Body(examples=BATCHES)],
) -> dict[str, Any]:
    """Score some sessions, all that never were, or all whose newest completed score has obsolete criteria."""
    known, refused = _chosen(body, app_state)
    decided = app_state.scorings.request_many(known, user, force=_is_forced(body))
    state = app_state.scorings.state()
    accepted: list[dict[str, Any]] = []
    existing: list[dict[str, Any]] = []
    for session, decision in zip(known, decided, strict=True):
        if isinstance(decision, EvalakeError):
            refused.append(_refusal(session.session_id, decision))
        else:
            (accepted if decision.is_new else existing).append(app_state.score(decision.row, state))
    return {"accepted": accepted, "existing": existing, "refused": refused}


@router.post("/estimate", response_model=EstimateAnswer, responses=errors(401, 500))
def estimate_scores(
    app_state: AppStateHere, user: User, body: Annotated[BatchRequest, Body(examples=BATCHES)]
) -> dict[str, Any]:
    """Tell how many calls of the judge a batch would make, and for how much, before it is asked for."""
    known, _ = _chosen(body, app_state)
    new = app_state.scorings.startable(known, force=_is_forced(body))
    estimate = app_state.scorings.estimate(new)
    low, high = estimate.usd or (None, None)
    judge = app_state.settings.judge
    return {"sessions": len(new), "calls": estimate.to_make, "usd_low": low, "usd_high": high, "judge": judge}


@router.get("/statistics", response_model=Statistics, responses=errors(401, 500))
def read_statistics(app_state: AppStateHere, user: User) -> Statistics:
    """Compute the distribution and trend of scores, missing tools, failure tags, and agreement with people."""
    return statistics(app_state.sessions.all(), app_state.scorings.state(), app_state.ratings.all())


@router.get("/roadmap", response_model=RoadmapView, responses=errors(401, 500))
def read_roadmap(app_state: AppStateHere, user: User) -> RoadmapView:
    """Read the newest roadmap of `evalake roadmap`: gaps of sessions, grouped by meaning, ranked by lost points."""
    return read_newest(app_state.settings.lake)


@router.put(f"{SESSION}/human-rating", response_model=views.Rating, responses=errors(401, 404, 500))
def rate(session_id: SessionId, app_state: AppStateHere, user: User, body: RatingRequest) -> views.Rating:
    """Rate the investigation as a person; the rating is kept beside the session's newest score."""
    return app_state.ratings.put(app_state.scorings.state().scored(session_id), body.score, body.note, user)


@router.get(f"{SESSION}/human-rating", response_model=RatingList, responses=errors(401, 404, 500))
def read_ratings(session_id: SessionId, app_state: AppStateHere, user: User) -> dict[str, Any]:
    """List the ratings that people gave the investigation, newest first."""
    state = app_state.scorings.state()
    state.scored(session_id)
    return {"session_id": session_id, "ratings": app_state.ratings.of(session_id, state)}


@reading.get("/status", response_model=StatusView, responses=errors(401, 500))
def read_status(app_state: AppStateHere, user: User) -> dict[str, Any]:
    """Read the version, the judge, the current criteria, where Prefect's pages are, and who is asking."""
    return {
        "version": CODE_VERSION,
        "user": user,
        "judge": app_state.settings.judge,
        "criteria_hash": app_state.settings.criteria,
        "prefect_url": app_state.queue.pages,
        "draining": app_state.scorings.draining,
        "sources": app_state.sessions.sources,
    }


@reading.get("/sessions", response_model=views.SessionPage, responses=errors(401, 500))
def read_sessions(app_state: AppStateHere, user: User, wanted: views.WantedQuery) -> dict[str, Any]:
    """List the sessions, filtered, sorted, and a page at a time."""
    sessions, state = app_state.sessions.all().values(), app_state.scorings.state()
    listed = views.matching(sessions, state, wanted)
    start = (wanted.page - 1) * wanted.page_size
    return {
        "sessions": [app_state.entry(known, newest) for known, newest in listed[start : start + wanted.page_size]],
        "page": wanted.page,
        "page_size": wanted.page_size,
        "total": len(listed),
        "pages": -(-len(listed) // wanted.page_size),
        "choices": views.choices(sessions, state),
    }


@reading.get(SESSION, response_model=views.Detail, responses=errors(400, 401, 404, 500))
def read_session(session_id: SessionId, app_state: AppStateHere, user: User) -> views.Detail:
    """Read a session whole: alert, conversation, final analysis, newest score and people's ratings."""
    return app_state.detail(app_state.sessions.find(session_id))


def _chosen(body: BatchRequest, app_state: AppStateHere) -> tuple[list[Known], list[dict[str, Any]]]:
    state = app_state.scorings.state()
    if body.session_ids is not None:
        ids = list(dict.fromkeys(body.session_ids))
    elif body.not_scored:
        ids = [session_id for session_id in app_state.sessions.all() if state.newest(session_id) is None]
    else:
        obsolete = [session_id for session_id, row in state.completed.items() if not state.is_current(row)]
        ids = [session_id for session_id in obsolete if state.scored(session_id)["status"] not in ACTIVE]
    known, refused = [], []
    for session_id in ids:
        try:
            known.append(app_state.sessions.find(session_id))
        except ApiError as error:
            refused.append(_refusal(session_id, error))
    return known, refused


def _is_forced(body: BatchRequest) -> bool:
    return body.force_rescore or body.obsolete


def _refusal(session_id: str, error: EvalakeError) -> dict[str, Any]:
    status = error.status if isinstance(error, ApiError) else 500
    return {"session_id": session_id, "status": status, "detail": str(error)}
