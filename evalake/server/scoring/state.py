"""The state of the service, which every request uses."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from evalake.contracts.contract import Row
from evalake.server.scoring.events import Watch
from evalake.server.scoring.queue import Queue
from evalake.server.scoring.scorings import Completions, Scorings, ScoringSettings, State
from evalake.server.scoring.sessions import Known, Sessions
from evalake.server.scoring.statistics import Ratings
from evalake.server.scoring.views import Detail, Entry, brief, score

SHOWN = ("alert", "runbook", "final_analysis", "summary", "error", "stages")  # of a session, on its page


@dataclass(frozen=True)
class AppState:
    """The parts of the service."""

    settings: ScoringSettings
    sessions: Sessions
    queue: Queue
    scorings: Scorings
    ratings: Ratings
    watch: Watch
    completions: Completions

    @classmethod
    def open(cls, settings: ScoringSettings) -> "AppState":
        """Build the state of the service from its settings."""
        sessions, service = Sessions(settings.lake, settings.sources), settings.configuration.service
        queue = Queue(settings.lake.uri, settings.configuration_file, service.scorings_at_once)
        scorings = Scorings(settings, sessions, queue)
        watch = Watch(scorings, queue, service.lost_after_seconds)
        completions = Completions(scorings, sessions, service)
        return cls(settings, sessions, queue, scorings, Ratings(settings.lake), watch, completions)

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
        return score(row, tools, self.watch.phase(score_id), self.queue.flow_run_of(row), retest, is_current=is_current)

    def entry(self, known: Known, newest: Row | None) -> dict[str, Any]:
        """Build the entry of a session in the list."""
        fields = {name: getattr(known, name) for name in Entry.model_fields if name != "score"}
        if newest is None:
            return {**fields, "score": None}
        is_current = newest["criteria_hash"] == self.settings.criteria
        return {**fields, "score": brief(newest, self.watch.phase(newest["score_id"]), is_current=is_current)}

    def detail(self, known: Known) -> Detail:
        """Build the whole description of a session."""
        state, session = self.scorings.state(), self.sessions.session(known)
        newest = state.newest(known.session_id)
        fields = {
            **self.entry(known, newest),
            **{name: getattr(session, name) for name in SHOWN},
            "score": None if newest is None else self.score(newest, state),
            "human_ratings": self.ratings.of(known.session_id, state),
        }
        return Detail(**fields)


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
