"""Events of scorings, which every listening client receives over a WebSocket.

Events come in order, the current state first; a slow client delays no other.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from signal import Signals
from typing import Any, TypeGuard

from fastapi import APIRouter, WebSocket
from prefect.client.schemas.objects import StateType

from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.server.auth import subprotocol
from evalake.server.scoring.queue import Queue, QueueError, Seen
from evalake.server.scoring.scorings import Completions, Scorings, State
from evalake.server.scoring.sessions import Sessions
from evalake.suites.session_review.score import ACTIVE, DIED, PHASES, lacks_second_turn, phase_at

ALL = "sessions"
ONE = "session:"
PROGRESS = "scoring.progress"  # is for those who listen to the session
QUEUED = 10_000  # messages that a client may be behind: a batch begins thousands of scorings at one moment
CHANNELS = 1000  # that one client may listen to
LONGEST_CHANNEL = len(ONE) + 1000  # characters, as many as an id in an address may have
LONGEST_MESSAGE = 4096  # characters
TOO_SLOW = 1013

LOOK_SECONDS = 0.5
WAITING_LOOK_SECONDS = 2.0  # how often Prefect is asked about scorings that only wait
START_SECONDS = 60.0  # for how much longer a process may be silent before its first sign of life
QUEUE_SECONDS = 3600.0  # for how long a scoring may wait for a pool's workers while they run none
SEND_SECONDS = 1.0  # for clients to be sent what waits for them as the service ends

_STEPS = ("pending", "started", *PHASES)  # what is told before the end, in this order
_OVER = {
    StateType.COMPLETED: "ended without a score",
    StateType.FAILED: "failed",
    StateType.CRASHED: "crashed",
    StateType.CANCELLED: "was cancelled",
    StateType.CANCELLING: "was cancelled",
}
_STATUS_CODE = re.compile(r"status code:? (-?\d{1,3})\b")
_BY_SHELLS = 128  # what shells and containers add to the number of the signal that ended a process

Event = Mapping[str, Any]

logger = logging.getLogger("evalake.service")
router = APIRouter()


class Listener:
    """One client: its channels, and its unsent messages."""

    def __init__(self) -> None:
        self.channels: set[str] = set()
        self.waiting: asyncio.Queue[Event] = asyncio.Queue(QUEUED)
        self.dropped = asyncio.Event()

    def put(self, message: Event) -> None:
        """Queue a message for the client, or drop the client where it is too far behind. Never waits."""
        try:
            self.waiting.put_nowait(message)
        except asyncio.QueueFull:
            self.dropped.set()

    def hears(self, event: Event) -> bool:
        """Tell whether an event is for this client, by the channels that it listens to."""
        if f"{ONE}{event['session_id']}" in self.channels:
            return True
        return ALL in self.channels and event["type"] != PROGRESS


class Hub:
    """All clients of this process. Used from the event loop only, so that events keep their order."""

    def __init__(self, current: Callable[[str], Event | None], active: Callable[[], Iterable[Event]]) -> None:
        self._current, self._active = current, active
        self._listeners: set[Listener] = set()

    def join(self) -> Listener:
        """Add a client, which listens to no channel yet."""
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a client."""
        self._listeners.discard(listener)

    async def sent(self) -> None:
        """Wait until clients were sent what waits for them, a moment at most."""
        waiting = [asyncio.ensure_future(listener.waiting.join()) for listener in self._listeners]
        if waiting:
            for late in (await asyncio.wait(waiting, timeout=SEND_SECONDS))[1]:
                late.cancel()

    def publish(self, event: Event) -> None:
        """Send an event to every client whom it is for."""
        for listener in self._listeners:
            if listener.hears(event):
                listener.put(event)

    def receive(self, listener: Listener, message: Any) -> None:
        """Answer a message of a client: subscribe, unsubscribe, ping; any other is an error."""
        kind = message.get("type") if isinstance(message, dict) else None
        channel = message.get("channel") if isinstance(message, dict) else None
        if kind == "ping":
            listener.put({"type": "pong"})
        elif kind not in ("subscribe", "unsubscribe"):
            listener.put(_error("a message has the type subscribe, unsubscribe or ping"))
        elif not _is_channel(channel):
            listener.put(_error("a channel is `sessions` or `session:` with an id"))
        elif kind == "unsubscribe":
            listener.channels.discard(channel)
            listener.put({"type": "unsubscribed", "channel": channel})
        elif len(listener.channels) >= CHANNELS:
            listener.put(_error(f"a client listens to {CHANNELS} channels at most"))
        else:
            self._subscribe(listener, channel)

    def _subscribe(self, listener: Listener, channel: str) -> None:
        listener.put({"type": "subscribed", "channel": channel})
        for event in self._active() if channel == ALL else [self._current(channel.removeprefix(ONE))]:
            if event is not None:
                listener.put(event)
        listener.channels.add(channel)


def _is_channel(channel: Any) -> TypeGuard[str]:
    is_short = isinstance(channel, str) and len(channel) <= LONGEST_CHANNEL
    return is_short and (channel == ALL or (channel.startswith(ONE) and channel != ONE))


def _error(detail: str) -> Event:
    return {"type": "error", "detail": detail}


class Watch:
    """Follows scorings, announces their changes, and fails those that are lost.

    It looks twice a second; the looking itself is done on a thread. A scoring is lost where its flow run ended before
    it did, where Prefect has none, or where its process gave no sign of life for as long as is configured. Only changes
    are timed, on this process's own clock: a sign of life is an artifact whose time of update moves.
    """

    def __init__(self, scorings: Scorings, queue: Queue, lost_after_seconds: float) -> None:
        self._latest: dict[str, Event] = {}  # by session
        self._announced: dict[str, Event] = {}  # the same for those who listen to all sessions
        self.hub = Hub(self._latest.get, self._active)
        self._scorings, self._queue, self._lost_after = scorings, queue, lost_after_seconds
        self._state, self._is_first = State(), True
        self._is_unseen = True  # until Prefect has told of the second turns that wait since an earlier service
        self._begun: dict[str, datetime] = {}  # what `Scorings.begun` is to be
        self._phase: dict[str, str] = {}  # of scorings in progress
        self._published: dict[str, int] = {}  # of scorings that are not over: how many steps were told
        self._life: dict[str, tuple[tuple[Any, ...], float]] = {}  # the last sign of life, and when it was first seen
        self._ran_at = float("-inf")  # when a scoring was last seen to run
        self._all_due = 0.0  # when scorings that wait are looked at again, too
        self._clock = 0
        self._complaint: str | None = None
        self._telling = asyncio.Lock()

    def phase(self, score_id: str) -> str:
        """Look up the phase of a scoring that is in progress."""
        return self._phase.get(score_id, next(iter(PHASES)))

    async def run(self) -> None:
        """Look again and again until cancelled. An error is logged, and the next look tries again."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - the watch goes on after any error
                self._complain(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once: announce changes, then fail lost scorings."""
        await self.tell()
        state, under_way = self._state, self._queue.under_way
        newest = [session[-1] for session in state.by_session.values()]
        rows = [row for row in newest if row["status"] in ACTIVE or (self._is_unseen and lacks_second_turn(row))]
        ids = {row["score_id"] for row in rows}
        self._life = {score_id: life for score_id, life in self._life.items() if score_id in ids}
        if (now := time.monotonic()) >= self._all_due:
            self._all_due = now + WAITING_LOOK_SECONDS
        else:
            rows = [row for row in rows if row["status"] != "pending" or row["score_id"] in under_way]
        rows += [state.by_id[each] for each in under_way - ids if each in state.by_id]  # over, and still to be ended
        if rows:
            await asyncio.to_thread(self._look_at_runs, rows)
            await self.tell()

    async def tell(self) -> None:
        """Announce changes."""
        async with self._telling:  # in the order in which the states were read
            self._tell(await asyncio.to_thread(self._scorings.state))

    def _complain(self, error: Exception) -> None:
        """Log an error, once for as long as the same error repeats."""
        if repr(error) != self._complaint:
            self._complaint = repr(error)
            trace = None if isinstance(error, EvalakeError) else error
            logger.warning("the watch over scorings: %s", error, exc_info=trace)

    # What is told.

    def _active(self) -> Iterable[Event]:
        """List the events of the current state of every session whose scoring is not over, or died."""
        over = ("scoring.completed", "scoring.failed")
        return [event for event in self._announced.values() if event["type"] not in over or self._died(event)]

    def _died(self, event: Event) -> bool:
        row = self._state.by_id.get(event["score_id"])
        return row is not None and row["status"] == "failed" and row["error_kind"] in DIED

    def _tell(self, state: State) -> None:
        known, is_first, self._state, self._is_first = self._state.by_id, self._is_first, state, False
        for score_id, row in state.by_id.items():
            before = known.get(score_id)
            is_new = before is None and not is_first and row["asked_at"] is not None
            if row["status"] in ACTIVE or score_id in self._published or is_new:
                self._steps(row)
            elif not is_first and (before is None or _outcome(before) != _outcome(row)):
                self._publish(row, *_ending(row))
        if is_first:
            for session_id, (*_, row) in state.by_session.items():
                if row["status"] not in ACTIVE:
                    self._latest[session_id] = event = self._event(row, *_ending(row))
                    if self._died(event):
                        self._announced[session_id] = event

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
            seen = self._queue.look(rows)
        except QueueError as error:
            self._complain(error)
            self._life.clear()  # nothing is known, and so nothing is lost
            return
        self._complaint, self._is_unseen = None, False
        for row in rows:
            score_id, run = row["score_id"], seen.get(row["score_id"])
            if run is not None:
                self._go_on(row, run)
            if row["status"] not in ACTIVE or (reason := self._why_lost(row, run)) is None:
                continue
            if self._scorings.fail(row, reason):
                logger.warning("the scoring %s of %r is lost: %s", score_id[:12], row["session_id"], reason)
                if run is not None and not run.state.is_final():
                    self._queue.crash(run.run, reason)
        active = {score_id for score_id, row in self._state.by_id.items() if row["status"] in ACTIVE}
        self._begun = {score_id: at for score_id, at in self._begun.items() if score_id in active}
        if self._begun.keys() != self._scorings.begun.keys():
            self._scorings.begun = dict(self._begun)  # a copy: `Scorings.state` reads again for another object

    def _go_on(self, row: Row, run: Seen) -> None:
        """Have a scoring go on as Prefect says: begun, in a phase, to be cancelled, or waiting for who runs it."""
        score_id = row["score_id"]
        if run.state.is_running():
            self._ran_at = time.monotonic()
        if run.state.is_running() and row["status"] in ACTIVE:
            self._phase[score_id] = phase_at(run.progress)
            self._begun.setdefault(score_id, run.run.start_time or datetime.now(UTC))
        elif run.state.is_cancelling():
            self._queue.give_up(score_id)
        elif run.state.is_scheduled() and (row["status"] == "pending" or lacks_second_turn(row)):
            self._queue.take(score_id, run.run)

    def _why_lost(self, row: Mapping[str, Any], run: Seen | None) -> str | None:
        """Say why a scoring counts as lost; None while it may still come to an end by itself."""
        sign = (row["status"], run.state.type, run.state.timestamp, run.beat) if run else (row["status"],)
        if self._life.get(row["score_id"], ((),))[0] != sign:
            self._life[row["score_id"]] = sign, time.monotonic()
        silent = time.monotonic() - self._life[row["score_id"]][1]
        if run is None:
            return "it has no flow run in Prefect" if silent > self._lost_after else None
        if ended := _OVER.get(run.state.type):
            # Its last row may be on its way to this reader, so it is given a moment
            return f"its flow run {ended}: {_in_words(run.state.message)}" if silent > 2 * LOOK_SECONDS else None
        if run.state.is_scheduled() and row["status"] == "pending":
            idle = min(silent, time.monotonic() - self._ran_at)
            is_stuck = run.run.deployment_id is not None and idle > QUEUE_SECONDS  # else it is queued here
            return f"no worker took a scoring for {QUEUE_SECONDS:g} seconds" if is_stuck else None
        if row["score_id"] in self._queue.under_way:
            return None  # it lives as this process does, however late Prefect has its signs of life
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


def _outcome(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Collect the status, and whether the second turn is still open."""
    return row["status"], row["missing_tools_analysis"] is None


def _ending(row: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if row["status"] == "completed":
        return "completed", {"total_score": row["total_score"]}
    return "failed", {"error_message": row["error_message"]}


async def follow(sessions: Sessions, hub: Hub, completions: Completions, seconds: float) -> None:
    """Announce new sessions; the sources are read every so many seconds, and theirs are scored where configured."""
    with suppress(EvalakeError):  # else they are announced once the lake can be read
        completions.add((await asyncio.to_thread(sessions.take_new))[1])  # sessions from before are not announced
    while sessions.has_sources:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(sessions.read_sources)
        except Exception:
            logger.exception("the sources of sessions could not be read")  # they are read again at the next turn
        try:
            new, landed = await asyncio.to_thread(sessions.take_new)
            for session_id in new:
                hub.publish({"type": "session.added", "session_id": session_id, "timestamp_us": time.time_ns() // 1000})
            completions.add(landed)
            await asyncio.to_thread(completions.begin)
        except Exception:
            logger.exception("new sessions could not be announced, or scored")  # they are tried again at the next turn


@router.websocket("/api/v1/ws")
async def listen(socket: WebSocket) -> None:
    """Let a client subscribe, and send it events until it leaves or falls behind."""
    hub: Hub = socket.app.state.app_state.watch.hub
    await socket.accept(subprotocol(socket))
    listener = hub.join()
    work = [
        asyncio.create_task(_send(socket, listener)),
        asyncio.create_task(_receive(socket, lambda message: hub.receive(listener, message))),
        asyncio.create_task(listener.dropped.wait()),
    ]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hub.leave(listener)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    if listener.dropped.is_set():  # it does not read, so that this may wait for a second at most
        with suppress(TimeoutError, RuntimeError):
            await asyncio.wait_for(socket.close(TOO_SLOW, "too slow: connect and subscribe again"), timeout=1.0)


async def _send(socket: WebSocket, listener: Listener) -> None:
    while True:
        await socket.send_text(json.dumps(await listener.waiting.get(), ensure_ascii=True))
        listener.waiting.task_done()


async def _receive(socket: WebSocket, take: Callable[[Any], None]) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        take(_decoded(message.get("text")))


def _decoded(text: str | None) -> Any:
    if text is None or len(text) > LONGEST_MESSAGE:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
