"""The watch: follows scorings, whoever runs them, announces their changes as events, and fails those that are lost.

A scoring is lost where Prefect says that its flow run ended before it did, where Prefect has no flow run of it, or
where its process gave no sign of life for as long as is configured. Only changes are timed, on this process's own
clock: a sign of life is an artifact whose time of update moves, so clocks that differ do no harm.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from signal import Signals
from typing import Any

from contracts.contract import Row
from core.errors import EvalakeError
from service.scoring.events import PROGRESS, Event, Hub
from service.scoring.prefect_gateway import PrefectGateway, PrefectGatewayError, Seen
from service.scoring.scorings import Scorings, State
from suites.session_review.scoring import ACTIVE, PHASES, phase_at

LOOK_SECONDS = 0.5
WAITING_LOOK_SECONDS = 2.0  # how often Prefect is asked about scorings that only wait
START_SECONDS = 60.0  # for how much longer a process may be silent before its first sign of life
QUEUE_SECONDS = 3600.0  # for how long a scoring may wait for a worker

_STEPS = ("pending", "started", *PHASES)  # what is told before the end, in this order
_OVER = {
    "COMPLETED": "its flow run ended without a score",
    "FAILED": "its flow run failed",
    "CRASHED": "its flow run crashed",
    "CANCELLED": "its flow run was cancelled",
    "CANCELLING": "its flow run was cancelled",
}

_STATUS_CODE = re.compile(r"status code:? (-?\d{1,3})\b")
_BY_SHELLS = 128  # what shells and containers add to the number of the signal that ended a process

logger = logging.getLogger("evalake.service")


@dataclass
class _Life:
    """The last sign of life of a scoring's process, and when it was first seen."""

    sign: tuple[Any, ...]
    since: float


class ScoringMonitor:
    """Looks twice a second, at scorings that wait every two seconds; the looking itself is done on a thread."""

    def __init__(self, scorings: Scorings, gateway: PrefectGateway, lost_after_seconds: float) -> None:
        self.hub = Hub(self.current, self.active)
        self._scorings, self._gateway, self._lost_after = scorings, gateway, lost_after_seconds
        self._state: State | None = None
        self._phase: dict[str, str] = {}  # of scorings in progress
        self._published: dict[str, int] = {}  # of scorings that are not over: how many steps were told
        self._latest: dict[str, Event] = {}  # by session
        self._announced: dict[str, Event] = {}  # the same for those who listen to all sessions
        self._life: dict[str, _Life] = {}
        self._all_due = 0.0  # when scorings that wait are looked at again, too
        self._clock = 0
        self._complaint: str | None = None

    def phase(self, score_id: str) -> str:
        """Look up the phase of a scoring that is in progress."""
        return self._phase.get(score_id, next(iter(PHASES)))

    def current(self, session_id: str) -> Event | None:
        """Look up the event of a session's current state; None where it was never scored."""
        return self._latest.get(session_id)

    def active(self) -> Iterable[Event]:
        """List the events of the current state of every session whose scoring is not over."""
        over = ("scoring.completed", "scoring.failed")
        return [event for event in self._announced.values() if event["type"] not in over]

    async def run(self) -> None:
        """Look again and again until cancelled. An error is logged, and the next look tries again."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - whatever fails, the watch must go on
                self._complain(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once: announce what has changed, then fail the scorings that are lost."""
        self._tell(await asyncio.to_thread(self._scorings.state))
        rows = [row for session in self._state_now.by_session.values() if (row := session[-1])["status"] in ACTIVE]
        ids = {row["score_id"] for row in rows}
        self._life = {score_id: life for score_id, life in self._life.items() if score_id in ids}
        if (now := time.monotonic()) >= self._all_due:
            self._all_due = now + WAITING_LOOK_SECONDS
        else:
            rows = [row for row in rows if row["status"] != "pending"]
        if rows:
            await asyncio.to_thread(self._look_at_runs, rows)
            self._tell(await asyncio.to_thread(self._scorings.state))

    def _complain(self, error: Exception) -> None:
        """Log an error, once for as long as the same error repeats."""
        if repr(error) != self._complaint:
            self._complaint = repr(error)
            trace = None if isinstance(error, EvalakeError) else error
            logger.warning("the watch over scorings: %s", error, exc_info=trace)

    @property
    def _state_now(self) -> State:
        return self._state or State()

    # What is told.

    def _tell(self, state: State) -> None:
        first = self._state is None
        known = self._state_now.by_id
        self._state = state
        for score_id, row in state.by_id.items():
            before = known.get(score_id)
            is_new = before is None and not first and row["asked_at"] is not None
            if row["status"] in ACTIVE or score_id in self._published or is_new:
                self._steps(row)
            elif not first and (before is None or before["status"] != row["status"]):
                self._end(row)
        if first:
            for rows in state.by_session.values():
                if rows[-1]["status"] not in ACTIVE:
                    self._latest[rows[-1]["session_id"]] = self._event(rows[-1], *_ending(rows[-1]))

    def _steps(self, row: Mapping[str, Any]) -> None:
        """Announce the steps that a scoring has reached, each exactly once, and its end where it has ended."""
        score_id, status = row["score_id"], row["status"]
        published = self._published.get(score_id, 0)
        reached = {"pending": 1, "failed": max(published, 1), "completed": len(_STEPS)}.get(status)
        if reached is None:
            reached = 1 + _STEPS.index(self.phase(score_id))
        for step in _STEPS[published:reached]:
            self._publish(row, *(("progress", {"phase": step}) if step in PHASES else (step, {})))
        self._published[score_id] = max(published, reached)
        if status not in ACTIVE:
            del self._published[score_id]
            self._phase.pop(score_id, None)
            self._end(row)

    def _end(self, row: Mapping[str, Any]) -> None:
        self._publish(row, *_ending(row))

    def _publish(self, row: Mapping[str, Any], kind: str, more: Mapping[str, Any]) -> None:
        event = self._event(row, kind, more)
        self._latest[row["session_id"]] = event
        if event["type"] != PROGRESS:
            self._announced[row["session_id"]] = event
        self.hub.publish(event)

    def _event(self, row: Mapping[str, Any], kind: str, more: Mapping[str, Any]) -> Event:
        self._clock = max(self._clock + 1, time.time_ns() // 1000)
        ids = {"score_id": row["score_id"], "session_id": row["session_id"]}
        return {"type": f"scoring.{kind}", **ids, "timestamp_us": self._clock, **more}

    # What is lost.

    def _look_at_runs(self, rows: list[Row]) -> None:
        try:
            seen = self._gateway.look(rows)
        except PrefectGatewayError as error:
            self._complain(error)
            self._life.clear()  # nothing is known, and so nothing is lost
            return
        self._complaint = None
        for row in rows:
            run = seen.get(row["score_id"])
            if run is not None and row["status"] == "in_progress":
                self._phase[row["score_id"]] = phase_at(run.progress)
            if (reason := self._why_lost(row, run)) is not None and self._scorings.fail(row, reason):
                logger.warning("the scoring %s of %r is lost: %s", row["score_id"][:12], row["session_id"], reason)
                if run is not None and run.state not in _OVER:
                    self._gateway.crash(run.flow_run_id, reason)

    def _why_lost(self, row: Mapping[str, Any], run: Seen | None) -> str | None:
        """Say why a scoring counts as lost; None while it may still come to an end by itself."""
        sign = (row["status"], run.state, run.beat, run.since) if run else (row["status"],)
        life = self._life.get(row["score_id"])
        if life is None or life.sign != sign:
            life = self._life[row["score_id"]] = _Life(sign, time.monotonic())
        silent = time.monotonic() - life.since
        if run is None:
            return "it has no flow run in Prefect" if silent > self._lost_after else None
        if run.state in _OVER:
            # Its last row may be on its way to this reader, so it is given a moment
            return f"{_OVER[run.state]}: {_in_words(run.message)}" if silent > 2 * LOOK_SECONDS else None
        if run.state == "SCHEDULED" and row["status"] == "pending":
            return f"no worker took it within {QUEUE_SECONDS:g} seconds" if silent > QUEUE_SECONDS else None
        patience = self._lost_after if run.beat else self._lost_after + START_SECONDS
        return f"its process gave no sign of life for {patience:g} seconds" if silent > patience else None


def _in_words(message: str | None) -> str:
    """Say why a flow run ended; where a signal killed its process, by the signal's name instead of an exit code."""
    match = _STATUS_CODE.search(message or "")
    code = int(match[1]) if match else 0
    number = -code if code < 0 else code - _BY_SHELLS
    if number in set(Signals):
        why = ", as where memory runs out" if number == Signals.SIGKILL else ""
        return f"its process was killed ({Signals(number).name}{why}); ask for it again"
    return message or "no reason given"


def _ending(row: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if row["status"] == "completed":
        return "completed", {"total_score": row["total_score"]}
    return "failed", {"error_message": row["error_message"]}
