"""The state of the service, which every request uses, and the scorings that it begins when sessions end."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from evalake.contracts.contract import Row
from evalake.core.configuration import Service
from evalake.core.errors import EvalakeError
from evalake.server.scoring.events import Watch
from evalake.server.scoring.queue import Queue
from evalake.server.scoring.scorings import Scorings, ScoringSettings, State
from evalake.server.scoring.sessions import Known, Sessions
from evalake.server.scoring.statistics import Ratings
from evalake.server.scoring.views import Detail, Entry, brief, score
from evalake.server.settings import DrainingError

SHOWN = ("alert", "runbook", "final_analysis", "summary", "error", "stages")  # of a session, on its page
TRIGGER = "score_on_completion"

logger = logging.getLogger("evalake.service")


class _CeilingError(EvalakeError):
    """No scoring may begin now."""


class Completions:
    """The sessions that have ended since the service runs, and wait to be scored."""

    def __init__(self, scorings: Scorings, sessions: Sessions, service: Service) -> None:
        self._scorings, self._sessions, self._service = scorings, sessions, service
        self._waiting: dict[str, None] = {}
        self._worst: dict[str, float] = {}  # the highest estimated cost of scorings that were begun here, by score id
        self._complaint: str | None = None

    def add(self, session_ids: Iterable[str]) -> None:
        """Note sessions that have ended."""
        if self._service.score_on_completion:
            self._waiting |= dict.fromkeys(session_ids)

    def begin(self) -> None:
        """Begin to score what waits, as far as the ceilings allow; the rest is tried again at the next turn."""
        for session_id in tuple(self._waiting):
            try:
                known = self._sessions.find(session_id)
                worst = self._worst_of(known)
                decided = self._scorings.request(session_id, TRIGGER)
                self._worst[decided.row["score_id"]] = worst
            except _CeilingError as reached:
                self._complain(str(reached))
                return
            except DrainingError:
                return
            except EvalakeError as error:
                self._complain(f"the session {session_id[:200]!r} is not scored by itself: {error}")
            del self._waiting[session_id]

    def _worst_of(self, known: Known) -> float:
        """Estimate the highest cost of scoring a session. Raises _CeilingError where a ceiling forbids it."""
        now, mine = datetime.now(UTC), self._begun()
        if sum(row["asked_at"] > now - timedelta(hours=1) for row in mine) >= self._service.completions_an_hour:
            raise _CeilingError(f"completions_an_hour ({self._service.completions_an_hour}) is reached")
        cost = self._scorings.estimate([known]).usd
        if cost is None:
            raise _CeilingError("the judge's price is unknown, so no ceiling of money holds: set `price` for it")
        spent = sum(
            self._worst.get(row["score_id"], cost[1]) if row["cost_usd"] is None else row["cost_usd"]
            for row in mine
            if row["asked_at"] > now - timedelta(days=1)
        )
        if spent + cost[1] > self._service.completion_usd_a_day:
            left = f"{spent:.4f} spent in 24 hours, {cost[1]:.4f} more at worst"
            raise _CeilingError(f"completion_usd_a_day ({self._service.completion_usd_a_day:g}) is reached: {left}")
        return cost[1]

    def _begun(self) -> list[Row]:
        return [row for row in self._scorings.state().by_id.values() if row["score_triggered_by"] == TRIGGER]

    def _complain(self, why: str) -> None:
        """Log why sessions wait, once for as long as the reason stays."""
        if (kind := why.partition(":")[0]) != self._complaint:
            self._complaint = kind
            logger.warning("sessions that end are not scored by themselves: %s", why)


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
