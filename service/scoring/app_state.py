"""The state of the service: everything that a request may need, in one place for the life of the service."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from contracts.contract import Row
from core.errors import EvalakeError
from service.scoring.monitor import ScoringMonitor
from service.scoring.prefect_gateway import PrefectGateway
from service.scoring.ratings import Ratings
from service.scoring.scorings import Scorings, State
from service.scoring.sessions import Known, Sessions
from service.scoring.settings import ScoringSettings
from service.scoring.views import Detail, brief, conversation, entry, score
from suites.session_review.scoring import ACTIVE


@dataclass(frozen=True)
class AppState:
    """What the service consists of."""

    settings: ScoringSettings
    sessions: Sessions
    gateway: PrefectGateway
    scorings: Scorings
    ratings: Ratings
    monitor: ScoringMonitor

    @classmethod
    def open(cls, settings: ScoringSettings) -> "AppState":
        """Build the state of the service from its settings."""
        sessions = Sessions(settings.lake, settings.sources)
        gateway = PrefectGateway(settings.lake.uri, settings.configuration_file)
        scorings = Scorings(settings, sessions, gateway)
        monitor = ScoringMonitor(scorings, gateway, settings.configuration.service.lost_after_seconds)
        return cls(settings, sessions, gateway, scorings, Ratings(settings.lake), monitor)

    def is_scoring(self) -> bool:
        """Tell whether a scoring is in progress; False where the table cannot be read."""
        try:
            return any(row["status"] == ACTIVE[1] for row in self.scorings.state().by_id.values())
        except EvalakeError:
            return False

    def score(self, row: Row, state: State | None = None) -> dict[str, Any]:
        """Convert the row of a scoring to the form of the API."""
        state, score_id = state or self.scorings.state(), row["score_id"]
        tools, is_current = state.tools.get(score_id, ()), state.is_current(row)
        return score(row, tools, self.monitor.phase(score_id), self.gateway.flow_run_of(row), is_current=is_current)

    def entry(self, known: Known, newest: Row | None) -> dict[str, Any]:
        """Build the entry of a session in the list."""
        if newest is None:
            return entry(known, None)
        is_current = newest["criteria_hash"] == self.settings.criteria
        return entry(known, brief(newest, self.monitor.phase(newest["score_id"]), is_current=is_current))

    def detail(self, known: Known) -> Detail:
        """Build the whole description of a session."""
        state = self.scorings.state()
        newest = state.newest(known.session_id)
        return Detail(
            **{
                **self.entry(known, newest),
                "score": None if newest is None else self.score(newest, state),
                **conversation(self.sessions.session(known)),
                "human_ratings": self.ratings.of(known.session_id, state),
            }
        )


def app_state_of(connection: HTTPConnection) -> AppState:
    """Look up the state of the service that a request came to."""
    state: AppState = connection.app.state.app_state
    return state


AppStateHere = Annotated[AppState, Depends(app_state_of)]


def user_of(connection: HTTPConnection) -> str:
    """Look up the user of a request, as access control found it."""
    user: str = connection.state.user
    return user


User = Annotated[str, Depends(user_of)]
