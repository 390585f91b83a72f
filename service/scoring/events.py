"""Events of scorings for every client that listens: in order, current state first; a slow client delays no other."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

ALL = "sessions"
ONE = "session:"
PROGRESS = "scoring.progress"  # is for those who listen to the session
QUEUED = 10_000  # messages that a client may be behind: a batch begins thousands of scorings at one moment
CHANNELS = 1000  # that one client may listen to
LONGEST_CHANNEL = len(ONE) + 1000  # characters, as many as an id in an address may have

Event = Mapping[str, Any]


class Listener:
    """One client: the channels it listens to, and what it has not been sent yet."""

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
    """All clients of this process. Used from the event loop only, so that what it does comes in one order."""

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

    def publish(self, event: Event) -> None:
        """Send an event to every client whom it is for."""
        for listener in self._listeners:
            if listener.hears(event):
                listener.put(event)

    def receive(self, listener: Listener, message: Any) -> None:
        """Answer what a client has sent: subscribe, unsubscribe, ping; anything else is an error."""
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
        if channel == ALL:
            now = list(self._active())
        else:
            current = self._current(channel.removeprefix(ONE))
            now = [] if current is None else [current]
        for event in now:
            listener.put(event)
        listener.channels.add(channel)


def _is_channel(channel: Any) -> TypeGuard[str]:
    if not isinstance(channel, str) or len(channel) > LONGEST_CHANNEL:
        return False
    return channel == ALL or (channel.startswith(ONE) and len(channel) > len(ONE))


def _error(detail: str) -> Event:
    return {"type": "error", "detail": detail}
