"""Scores sessions by themselves as they end, where the configuration says so, within its ceilings of money and rate."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from evalake.contracts.contract import Row
from evalake.core.configuration import Service
from evalake.core.errors import EvalakeError
from evalake.server.errors import DrainingError
from evalake.server.scoring.scorings import Scorings
from evalake.server.scoring.sessions import Known, Sessions

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
