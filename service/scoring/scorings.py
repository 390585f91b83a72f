"""Scorings: what stands in the table, and the rule by which a new one starts or does not."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import polars as pl

from contracts.compile.arrow import conform
from contracts.contract import Row
from contracts.tables import RUNS
from core.errors import EvalakeError
from flows.score_session import NEVER, failed, item_of, pending
from service.errors import ConflictError, DrainingError, NotFoundError
from service.scoring.prefect_gateway import PrefectGateway, PrefectGatewayError
from service.scoring.sessions import Known, Sessions
from service.scoring.settings import ScoringSettings
from storage.cached_table import CachedTable
from storage.landing import insert_unless
from suites.session_review.contract import MISSING_TOOLS, RESULTS
from suites.session_review.scoring import ACTIVE, CANCELLED, LOST
from suites.session_review.suite import SUITE
from tasks.runtime.context import RunContext
from tasks.steps.estimate import Estimate, estimate_items

TRIES = 20  # how often a request is decided anew because others were quicker
LOOKED_AT = 200  # sessions at most, of which an estimate reads the texts


# Rows that block a new scoring of their session
_ANY = "old.session_id = new.session_id"
_ACTIVE_OR_SAME = f"{_ANY} AND (old.status IN {ACTIVE} OR old.score_id = new.score_id)"

logger = logging.getLogger("evalake.service")

TOLD_OF_A_TOOL = ("tool_name", "rationale", "kind")


@dataclass(frozen=True)
class State:
    """Holds the table as it is now.

    Rows by score id, the scorings of each session from old to new, the tools that each score names in their order, when
    each run ended, and the criteria that are in use.
    """

    by_id: Mapping[str, Row] = field(default_factory=dict)
    by_session: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tools: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    runs: Mapping[str, datetime | None] = field(default_factory=dict)
    criteria: str = ""

    def newest(self, session_id: str) -> Row | None:
        """Find a session's newest scoring: one under way, or the last one that ended."""
        rows = self.by_session.get(session_id)
        return rows[-1] if rows else None

    def scored(self, session_id: str) -> Row:
        """Find a session's newest scoring as `newest` does. Raises NotFoundError where there is none."""
        if (row := self.newest(session_id)) is None:
            raise NotFoundError(f"the session {session_id[:200]!r} was never scored")
        return row

    def is_current(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a scoring was made under the criteria in use."""
        return bool(row["criteria_hash"] == self.criteria)

    def ended(self, row: Row) -> datetime | None:
        """Look up when a scoring ended: by itself, or with the run that it was part of; None where this is unknown."""
        ended: datetime | None = row["completed_at"] or self.runs.get(row["landed_by_run"])
        return ended


@dataclass(frozen=True)
class Decision:
    """What a request for a score led to: a new scoring, or the one that is there."""

    row: Row
    is_new: bool


class Scorings:
    """The scorings of a lake. Safe for threads; other processes are kept out by the table's log."""

    def __init__(self, settings: ScoringSettings, sessions: Sessions, gateway: PrefectGateway) -> None:
        self._settings, self._sessions, self._gateway = settings, sessions, gateway
        self._rows = CachedTable(settings.lake, RESULTS)
        self._tools = CachedTable(settings.lake, MISSING_TOOLS, ("score_id", "position", *TOLD_OF_A_TOOL))
        self._runs = CachedTable(settings.lake, RUNS, ("run_id", "started_at", "ended_at"), SUITE.name)
        self._read: tuple[tuple[pl.DataFrame, ...], State] = ((), State())
        self._lock = threading.Lock()
        self._busy: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self.draining = False

    def state(self) -> State:
        """Read all scorings as they are now. Returns the same object until something changes."""
        with self._lock:
            frames = (self._rows.rows(), self._tools.rows(), self._runs.rows())
            if len(self._read[0]) != 3 or any(a is not b for a, b in zip(frames, self._read[0], strict=True)):
                self._read = (frames, _state(*frames, self._settings.criteria))
            return self._read[1]

    def request(self, session_id: str, user: str, *, force: bool = False) -> Decision:
        """Begin to score a session, or return the scoring that it has. Raises the ApiError that says why not."""
        known = self._sessions.find(session_id)
        with self._alone(session_id):
            for _ in range(TRIES):
                current = self.state().newest(session_id)
                if (existing := _existing(current, force=force)) is not None:
                    return Decision(existing, is_new=False)
                (row,) = self._start([known], user, force=force) or (None,)
                if row is not None:
                    return Decision(row, is_new=True)
        raise EvalakeError(f"the scorings of the session {session_id[:200]!r} keep changing: try again")

    def request_many(self, sessions: Sequence[Known], user: str, *, force: bool) -> list[Decision | EvalakeError]:
        """Do as `request` for each of several sessions, with one commit for all that are new."""
        state = self.state()
        decided: dict[str, Decision | EvalakeError] = {}
        new: list[Known] = []
        for known in sessions:
            try:
                if (existing := _existing(state.newest(known.session_id), force=force)) is None:
                    new.append(known)
                else:
                    decided[known.session_id] = Decision(existing, is_new=False)
            except ConflictError as error:
                decided[known.session_id] = error
        started = {row["session_id"]: Decision(row, is_new=True) for row in self._start(new, user, force=force)}
        for known in new:
            decided[known.session_id] = started.get(known.session_id) or self._again(known, user, force=force)
        return [decided[known.session_id] for known in sessions]

    def fail(self, row: Row, reason: str) -> bool:
        """End a lost scoring; False where it was over already."""
        return failed(self._settings.lake, row, LOST, reason)

    def cancel(self, session_id: str, user: str) -> Row:
        """End the scoring that is under way; returns its row. Raises ApiError where there is none, or it is over."""
        row = self.state().scored(session_id)
        if row["status"] not in ACTIVE or not failed(
            self._settings.lake, row, CANCELLED, f"it was cancelled by {user}"
        ):
            raise ConflictError(f"no scoring of the session {session_id[:200]!r} is under way: there is none to cancel")
        try:
            self._gateway.cancel(row)
        except PrefectGatewayError as error:  # what its process finds out does not count any more
            logger.warning("the scoring %s of %r is cancelled: %s", row["score_id"][:12], session_id, error)
        return self.state().by_id[row["score_id"]]

    def startable(self, sessions: Sequence[Known], *, force: bool) -> list[Known]:
        """Select the sessions for which a request would start a scoring."""
        newest = ((known, self.state().newest(known.session_id)) for known in sessions)
        return [known for known, row in newest if row is None or (force and row["status"] not in ACTIVE)]

    def estimate(self, sessions: Sequence[Known]) -> Estimate:
        """Estimate the judge's calls and their cost for scoring sessions. Of many sessions, a sample stands for all."""
        context = self._context("estimate")
        state = self.state()
        some = sessions[:: ceil(len(sessions) / LOOKED_AT) or 1]
        items = [
            item_of(context, sample, self._settings.judge, _next(state, known))
            for known, sample in self._sessions.samples(some)
        ]
        return estimate_items(context, items, len(sessions) / max(len(some), 1))

    def _context(self, run_id: str) -> RunContext:
        return RunContext(run_id, SUITE.name, self._settings.lake, self._settings.configuration)

    def _again(self, known: Known, user: str, *, force: bool) -> Decision | EvalakeError:
        """Decide on one session of several anew, because another request was quicker."""
        try:
            return self.request(known.session_id, user, force=force)
        except EvalakeError as error:
            return error

    def _start(self, sessions: Sequence[Known], user: str, *, force: bool) -> list[Row]:
        """Begin scorings of the sessions in which no other scoring blocks them, and submit them; returns their rows."""
        if not sessions:
            return []
        if self.draining:
            raise DrainingError("the service is shutting down and starts no new scoring")
        # The run names this request, so that its rows are told from those of a request that came at the same moment.
        context = self._context(f"request-{uuid4().hex[:12]}")
        state = self.state()
        rows = [
            pending(context, sample, self._settings.judge, _next(state, known), user)
            for known, sample in self._sessions.samples(sessions)
        ]
        unless = _ACTIVE_OR_SAME if force else _ANY
        inserted = insert_unless(self._settings.lake, RESULTS, conform(rows, RESULTS), unless)
        if inserted < len(rows):
            mine = {row["score_id"] for row in self.state().by_id.values() if row["landed_by_run"] == context.run_id}
            rows = [row for row in rows if row["score_id"] in mine]
        self._submit(rows)
        return rows

    def _submit(self, rows: Sequence[Row]) -> None:
        try:
            self._gateway.submit(rows)
        except PrefectGatewayError as error:
            for row in rows:
                if not self._gateway.has(row):
                    self.fail(row, str(error))
            raise

    def _alone(self, session_id: str) -> threading.Lock:
        """Look up the lock of a session, so that requests for it wait for each other and cause no conflicts in the log.

        It is kept for as long as one of them holds it or waits for it.
        """
        with self._lock:
            return self._busy.setdefault(session_id, threading.Lock())


def _existing(current: Row | None, *, force: bool) -> Row | None:
    """Find the scoring that answers a request; None where a new one may start."""
    if current is None:
        return None
    if current["status"] not in ACTIVE:
        return None if force else current
    if force:
        raise ConflictError(f"a scoring is {current['status']} already: wait for its end before asking for another")
    return current


def _next(state: State, known: Known) -> int:
    """Compute the number of a session's next scoring: above all that it had, whoever judged."""
    return 1 + max((row["replicate"] for row in state.by_session.get(known.session_id, ())), default=-1)


def _state(scores: pl.DataFrame, tools: pl.DataFrame, of_runs: pl.DataFrame, criteria: str) -> State:
    began, ended = (dict(of_runs.select("run_id", name).iter_rows()) for name in ("started_at", "ended_at"))
    rows = scores.to_dicts()

    def age(row: Row) -> tuple[bool, datetime, int]:
        run_id = row["landed_by_run"]
        at = row["completed_at"] or row["asked_at"] or ended.get(run_id) or began.get(run_id) or NEVER
        return row["status"] in ACTIVE, at, row["replicate"]

    by_session: dict[str, list[Row]] = {}
    for row in sorted(rows, key=age):
        by_session.setdefault(row["session_id"], []).append(row)
    named = tools.sort("position").drop("position").rows_by_key("score_id", named=True)
    return State({row["score_id"]: row for row in rows}, by_session, named, ended, criteria)
