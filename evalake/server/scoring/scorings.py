"""Scorings: their settings, their rows in the table, and the rule for starting a new one."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import ceil, sqrt
from statistics import variance
from typing import Any
from uuid import uuid4

import polars as pl

from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUNS
from evalake.core.configuration import Service
from evalake.core.errors import EvalakeError, LakeError
from evalake.core.redaction import require_no_password
from evalake.flows.score_session import NEVER, failed, item_of, pending, read_samples
from evalake.models.routes import find_route
from evalake.server.scoring.queue import Queue, QueueError
from evalake.server.scoring.sessions import TRIGGER, Known, Sessions
from evalake.server.settings import ConflictError, DrainingError, NotFoundError, Settings
from evalake.storage.cached_table import CachedTable
from evalake.storage.landing import insert_unless, land
from evalake.suites.registry import baselines
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.prompts import criteria_hash_of
from evalake.suites.session_review.score import ACTIVE, CANCELLED, DIED, LOST, lacks_second_turn
from evalake.suites.session_review.sources.read import require_url
from evalake.suites.session_review.suite import SUITE
from evalake.tasks.plan import Estimate, estimate_items
from evalake.tasks.runtime.context import RunContext, options_of
from evalake.tasks.runtime.server import read_secret

TRIES = 20  # how often a request is decided again because others were quicker
LOOKED_AT = 200  # sessions at most, whose texts an estimate reads
TOLD_OF_A_TOOL = ("tool_name", "rationale", "kind")

# Rows that block a new scoring of their session
_ANY = "old.session_id = new.session_id"
_ACTIVE_OR_SAME = f"{_ANY} AND (old.status IN {ACTIVE} OR old.score_id = new.score_id)"

logger = logging.getLogger("evalake.service")

Begun = Mapping[str, datetime]
"""When scorings began whose rows still wait, by score id: the table says that they were asked for, and how they end."""


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(Settings):
    """The judge and the sources of sessions, beside what every service needs."""

    judge: str = SUITE.conversation.default_judges[0]
    sources: tuple[str, ...] = ()

    @cached_property
    def criteria(self) -> str:
        """The hash of the criteria that sessions are scored under now."""
        return criteria_hash_of(options_of(SUITE, self.configuration), SUITE.prompts.types[0])

    @property
    def judges(self) -> tuple[str, ...]:
        """The judge, and those that take over where its provider cannot answer."""
        return self.judge, *self.configuration.fallbacks(self.judge)

    def check(self) -> None:
        """Check options, sources and judge. Raises an EvalakeError for the first thing that is wrong."""
        options_of(SUITE, self.configuration)
        for source in self.sources:
            require_no_password(
                "--sessions", source, "leave the password out and set PGPASSWORD, or the variable of the API's token"
            )
            require_url(source)
        for judge in self.judges:
            find_route(judge, self.configuration, read_secret, baselines())


@dataclass(frozen=True)
class State:
    """Holds the table as it is now.

    Rows by score id, the scorings of each session from old to new, the tools that each score names in their order, and
    the criteria that are in use. A scoring that was part of a run ended with it.
    """

    by_id: Mapping[str, Row] = field(default_factory=dict)
    by_session: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tools: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    criteria: str = ""

    def newest(self, session_id: str) -> Row | None:
        """Find a session's newest scoring: one under way, or the last one that ended."""
        rows = self.by_session.get(session_id)
        return rows[-1] if rows else None

    @cached_property
    def completed(self) -> Mapping[str, Row]:
        """Find the newest completed scoring of each session that has one."""
        rows = ((session_id, row) for session_id, rows in self.by_session.items() for row in rows)
        return {session_id: row for session_id, row in rows if row["status"] == "completed"}

    def scored(self, session_id: str) -> Row:
        """Find a session's newest scoring as `newest` does. Raises NotFoundError without one."""
        if (row := self.newest(session_id)) is None:
            raise NotFoundError(f"the session {session_id[:200]!r} was never scored")
        return row

    def is_current(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a scoring was made under the criteria in use."""
        return bool(row["criteria_hash"] == self.criteria)

    @cached_property
    def deviations(self) -> Mapping[tuple[str, str], tuple[float, int]]:
        """Pool the deviation (ddof 1) of one session's repeated scores by judge and criteria; with its sessions."""
        totals: dict[tuple[str, str, str], list[int]] = {}
        for row in self.by_id.values():
            if row["status"] == "completed":
                key = row["judge"], row["criteria_hash"], row["session_id"]
                totals.setdefault(key, []).append(row["total_score"])
        squares: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for (judge, criteria, _), scores in totals.items():
            if (freedom := len(scores) - 1) > 0:
                squares.setdefault((judge, criteria), []).append((variance(scores) * freedom, freedom))
        return {
            key: (sqrt(sum(square for square, _ in of) / sum(freedom for _, freedom in of)), len(of))
            for key, of in squares.items()
        }


@dataclass(frozen=True)
class Decision:
    """The result of a request for a score: a new scoring, or the present one."""

    row: Row
    is_new: bool


class Scorings:
    """The scorings of a lake. Safe for threads; other processes are kept out by the table's log.

    Attributes:
        begun: Which scorings have begun, as Prefect tells it.
        draining: Whether no new scoring starts.
    """

    def __init__(self, settings: ScoringSettings, sessions: Sessions, queue: Queue) -> None:
        self._settings, self._sessions, self._queue = settings, sessions, queue
        self._tables = (
            CachedTable(settings.lake, RESULTS),
            CachedTable(settings.lake, MISSING_TOOLS, ("score_id", "position", *TOLD_OF_A_TOOL)),
            CachedTable(settings.lake, RUNS, ("run_id", "started_at", "ended_at"), SUITE.name),
        )
        self._read: tuple[tuple[Any, ...], State] = ((), State())
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self.begun: Begun = {}
        self.draining = False

    def state(self) -> State:
        """Read all scorings as they are now. Returns the same object until something changes."""
        with self._lock:
            scores, tools, runs = (table.rows() for table in self._tables)
            read = (scores, tools, runs, self.begun)
            if [*map(id, read)] != [*map(id, self._read[0])]:
                self._read = (read, state_of(scores, tools, runs, self._settings.criteria, self.begun))
            return self._read[1]

    def request(self, session_id: str, user: str, *, force: bool = False) -> Decision:
        """Begin to score a session, or return the scoring that it has. Raises the ApiError that says why not."""
        (decided,) = self.request_many([self._sessions.find(session_id)], user, force=force)
        if isinstance(decided, EvalakeError):
            raise decided
        return decided

    def request_many(self, sessions: Sequence[Known], user: str, *, force: bool) -> list[Decision | EvalakeError]:
        """Do as `request` for each of several sessions, with one commit for all that are new."""
        decided: dict[str, Decision | EvalakeError] = {}
        for _ in range(TRIES):
            # One at a time, so that requests to this process cause no conflicts in the log; a batch holds up nobody
            with self._starting if len(sessions) == 1 else nullcontext():
                new = self._decide([each for each in sessions if each.session_id not in decided], decided, force=force)
                rows = self._insert(new, user, force=force) if new else []
            self._submit(rows)
            decided |= {row["session_id"]: Decision(row, is_new=True) for row in rows}
            if len(decided) == len(sessions):
                break
        busy = "the scorings of the session {!r} keep changing: try again"
        return [decided.get(key) or EvalakeError(busy.format(key[:200])) for key in (k.session_id for k in sessions)]

    def second_turn(self, session_id: str) -> tuple[Row, bool]:
        """Ask for the missing tools alone, where a score lacks them; returns its row, and whether the judge is asked.

        The ledger answers the first turn. Raises ApiError where the session was never scored, or is being scored.
        """
        row = self.state().scored(session_id)
        if row["status"] in ACTIVE:
            raise ConflictError(f"a scoring is {row['status']} already: wait for its end")
        if self.draining:
            raise DrainingError("the service is shutting down and starts no new scoring")
        if not lacks_second_turn(row):
            return row, False
        with self._starting:
            if not self._queue.awaits(row):
                self._queue.submit([row])
        return row, True

    def renew(self) -> None:
        """Ask for scorings that still wait as this service asks, so that an upgrade or other criteria fail none."""
        for row in self.state().by_id.values():
            if row["status"] != "pending" or row["asked_at"] is None:
                continue
            sample = read_samples(self._settings.lake, [row["sample_hash"]])[row["sample_hash"]]
            context, given = self._context(row["landed_by_run"]), (row["replicate"], row["score_triggered_by"])
            now = pending(context, sample, row["judge"], *given)
            if now["prompt_hash"] != row["prompt_hash"]:
                renewed = {**now, "score_id": row["score_id"], "asked_at": row["asked_at"]}
                land(self._settings.lake, RESULTS, conform([renewed], RESULTS))
                logger.info("the scoring %s of %r is asked as of now", row["score_id"][:12], row["session_id"])

    def require_queue(self) -> None:
        """Raise QueueError where Prefect does not answer, so that no row lands that would fail at once."""
        self._queue.idle_pool()

    def fail(self, row: Row, reason: str) -> bool:
        """End a lost scoring; False where it was over already."""
        return failed(self._settings.lake, row, LOST, reason)

    def cancel(self, session_id: str, user: str) -> Row:
        """End the running scoring; returns its row. Raises ApiError without a running one."""
        row, reason = self.state().scored(session_id), f"it was cancelled by {user}"
        if row["status"] not in ACTIVE or not failed(self._settings.lake, row, CANCELLED, reason):
            now = self.state().by_id[row["score_id"]]
            why = f" ({now['error_message']})" if now["error_message"] else ""
            raise ConflictError(f"the scoring of {session_id[:200]!r} is over: it has {now['status']}{why}")
        try:
            self._queue.cancel(row)
        except QueueError as error:  # what its process finds out does not count any more
            logger.warning("the scoring %s of %r is cancelled: %s", row["score_id"][:12], session_id, error)
        return self.state().by_id[row["score_id"]]

    def startable(self, sessions: Sequence[Known], *, force: bool) -> list[Known]:
        """Select the sessions for which a request would start a scoring."""
        newest = ((known, self.state().newest(known.session_id)) for known in sessions)
        return [known for known, row in newest if row is None or (force and row["status"] not in ACTIVE)]

    def estimate(self, sessions: Sequence[Known], judge: str | None = None) -> Estimate:
        """Estimate the judge's calls and their cost for scoring sessions. Of many sessions, a sample stands for all."""
        context, state = self._context("estimate"), self.state()
        some = sessions[:: ceil(len(sessions) / LOOKED_AT) or 1]
        items = [
            item_of(context, sample, judge or self._settings.judge, _next(state, known)[0])
            for known, sample in self._sessions.samples(some)
        ]
        return estimate_items(context, items, len(sessions) / max(len(some), 1))

    def worst_usd(self, known: Known) -> float | None:
        """Estimate the highest cost of scoring a session, by whichever judge; None where a judge's price is unknown."""
        costs = [self.estimate([known], judge).usd for judge in self._settings.judges]
        return None if None in costs else max(cost[1] for cost in costs if cost is not None)

    def _context(self, run_id: str) -> RunContext:
        return RunContext(run_id, SUITE.name, self._settings.lake, self._settings.configuration)

    def _decide(
        self, sessions: Sequence[Known], decided: dict[str, Decision | EvalakeError], *, force: bool
    ) -> list[Known]:
        """Decide on the sessions whose scorings answer the request; returns those where a new one may start."""
        state, new = self.state(), []
        for known in sessions:
            current = state.newest(known.session_id)
            if current is None or (force and current["status"] not in ACTIVE):
                new.append(known)
            elif force:
                busy = f"a scoring is {current['status']} already: wait for its end before asking for another"
                decided[known.session_id] = ConflictError(busy)
            else:
                decided[known.session_id] = Decision(current, is_new=False)
        return new

    def _insert(self, sessions: Sequence[Known], user: str, *, force: bool) -> list[Row]:
        """Land pending rows of the sessions in which no other scoring blocks them; returns those that landed."""
        if self.draining:
            raise DrainingError("the service is shutting down and starts no new scoring")
        # The run names this request, so that its rows are told from those of a request that came at the same moment.
        context, state = self._context(f"request-{uuid4().hex[:12]}"), self.state()
        rows = [
            pending(context, sample, self._settings.judge, replicate, user, after)
            for known, sample in self._sessions.samples(sessions)
            for replicate, after in [_next(state, known)]
        ]
        unless = _ACTIVE_OR_SAME if force else _ANY
        if insert_unless(self._settings.lake, RESULTS, conform(rows, RESULTS), unless) < len(rows):
            mine = {row["score_id"] for row in self.state().by_id.values() if row["landed_by_run"] == context.run_id}
            rows = [row for row in rows if row["score_id"] in mine]
        return rows

    def _submit(self, rows: Sequence[Row]) -> None:
        try:
            if rows:
                self._queue.submit(rows)
        except QueueError as error:
            for row in rows:
                if not self._queue.has(row):
                    self.fail(row, str(error))
            raise


def _next(state: State, known: Known) -> tuple[int, Row | None]:
    """Compute the number of a session's next scoring: above all earlier ones, of any judge.

    A scoring that died keeps its number, so that the ledger gives what was paid for; it is returned, too.
    """
    rows = state.by_session.get(known.session_id, ())
    if rows and rows[-1]["status"] == "failed" and rows[-1]["error_kind"] in DIED:
        return rows[-1]["replicate"], rows[-1]
    return 1 + max((row["replicate"] for row in rows), default=-1), None


def state_of(
    scores: pl.DataFrame, tools: pl.DataFrame, of_runs: pl.DataFrame, criteria: str, begun: Begun | None = None
) -> State:
    """Build the state from rows of `session_scores`, `session_missing_tools` and `runs`."""
    started, ended = (dict(of_runs.select("run_id", name).iter_rows()) for name in ("started_at", "ended_at"))
    rows = {row["score_id"]: row for row in scores.to_dicts()}
    for row in rows.values():
        if row["status"] not in ACTIVE:
            row["completed_at"] = row["completed_at"] or ended.get(row["landed_by_run"])
    for score_id, at in (begun or {}).items():
        if score_id in rows and rows[score_id]["status"] == "pending":
            at = max(at, rows[score_id]["asked_at"] or at)
            rows[score_id] = {**rows[score_id], "status": "in_progress", "started_at": at}

    def age(row: Row) -> tuple[bool, datetime, int]:
        at = row["completed_at"] or row["asked_at"] or started.get(row["landed_by_run"]) or NEVER
        return row["status"] in ACTIVE, at, row["replicate"]

    by_session: dict[str, list[Row]] = {}
    for row in sorted(rows.values(), key=age):
        by_session.setdefault(row["session_id"], []).append(row)
    named = tools.sort("position").drop("position").rows_by_key("score_id", named=True)
    return State(rows, by_session, named, criteria)


class _CeilingError(EvalakeError):
    """No scoring may begin now."""


class Completions:
    """The sessions that have ended since a service scores them by itself, and wait for it."""

    def __init__(self, scorings: Scorings, sessions: Sessions, service: Service) -> None:
        self._scorings, self._sessions, self._service = scorings, sessions, service
        self._waiting: dict[str, None] = {}
        self._worst: dict[str, float] = {}  # the highest estimated cost of scorings that were begun here, by score id
        self._complaint: str | None = None
        self._is_resumed = False

    def add(self, session_ids: Iterable[str]) -> None:
        """Note sessions that have ended."""
        if self._service.score_on_completion:
            self._waiting |= dict.fromkeys(session_ids)

    def begin(self) -> None:
        """Begin to score what waits, as far as the ceilings allow; the rest is tried again at the next turn.

        So is all of it where Prefect or the lake is away.
        """
        if self._service.score_on_completion and not self._is_resumed:  # what an earlier service left
            state = self._scorings.state()
            self.add(each for each in self._sessions.to_be_scored() if state.newest(each) is None)
            self._is_resumed = True
        for session_id in tuple(self._waiting):
            try:
                known = self._sessions.find(session_id)
                worst = self._worst_of(known)
                self._scorings.require_queue()
                decided = self._scorings.request(session_id, TRIGGER)
                self._worst[decided.row["score_id"]] = worst
            except _CeilingError as reached:
                self._complain(str(reached))
                return
            except DrainingError:
                return
            except EvalakeError as error:
                self._complain(f"the session {session_id[:200]!r} is not scored by itself: {error}")
                if isinstance(error, QueueError | LakeError):
                    return
            del self._waiting[session_id]

    def _worst_of(self, known: Known) -> float:
        """Estimate the highest cost of scoring a session. Raises _CeilingError where a ceiling forbids it."""
        now, rows = datetime.now(UTC), self._scorings.state().by_id.values()
        mine = [row for row in rows if row["score_triggered_by"] == TRIGGER]
        if sum(row["asked_at"] > now - timedelta(hours=1) for row in mine) >= self._service.completions_an_hour:
            raise _CeilingError(f"completions_an_hour ({self._service.completions_an_hour}) is reached")
        if (worst := self._scorings.worst_usd(known)) is None:
            raise _CeilingError("the price of a judge is unknown, so no ceiling of money holds: set `price` for it")
        spent = sum(
            self._worst.get(row["score_id"], worst) if row["cost_usd"] is None else row["cost_usd"]
            for row in mine
            if row["asked_at"] > now - timedelta(days=1)
        )
        if spent + worst > self._service.completion_usd_a_day:
            left = f"{spent:.4f} spent in 24 hours, {worst:.4f} more at worst"
            raise _CeilingError(f"completion_usd_a_day ({self._service.completion_usd_a_day:g}) is reached: {left}")
        return worst

    def _complain(self, why: str) -> None:
        """Log why sessions wait, once for as long as the reason stays."""
        if (kind := why.partition(":")[0]) != self._complaint:
            self._complaint = kind
            logger.warning("sessions that end are not scored by themselves: %s", why)
