"""Answers that are kept until a table of theirs changes: many readers of a page cost what one costs."""

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachetools import LRUCache
from fastapi import Response
from pydantic import BaseModel

from evalake.contracts.contract import Contract
from evalake.storage.lake import Lake

MOST_KEPT = 32  # answers; one of 5,000 metric values takes some 3 MB
OLDEST_SECONDS = 10.0  # since when an answer may be out of date


@dataclass
class _Kept:
    """The newest answer of a question, and when it was last up to date."""

    state: Hashable = None
    body: bytes | None = None
    current_at: float = 0.0


class Answers:
    """The answers of a lake. While one thread makes an answer, other readers get the ones before.

    One answer is made at a time: threads that compute beside each other take the interpreter from whoever reads.
    """

    def __init__(self) -> None:
        self._kept: LRUCache[Hashable, _Kept] = LRUCache(MOST_KEPT)
        self._lock, self._making = threading.Lock(), threading.Lock()

    def answer(self, question: Hashable, state: Hashable, make: Callable[[], BaseModel]) -> Response:
        """Answer with JSON: what is kept for the question, or a new answer where the state is another."""
        with self._lock:
            kept = self._kept.setdefault(question, _Kept())
        must_wait = kept.body is None or time.monotonic() - kept.current_at > OLDEST_SECONDS
        if kept.state != state and self._making.acquire(blocking=must_wait):
            try:
                if kept.state != state:
                    kept.body, kept.state = make().model_dump_json().encode(), state
            finally:
                self._making.release()
        if kept.state == state:
            kept.current_at = time.monotonic()
        return Response(kept.body, media_type="application/json")


def state_of(lake: Lake, contracts: Sequence[Contract]) -> tuple[Any, ...]:
    """Tell the states of tables apart: by the time of the last commit in a folder, by the version elsewhere."""
    if "://" in lake.uri:
        return tuple(map(lake.version, contracts))
    logs = [Path(lake.uri) / each.table / "_delta_log" for each in contracts]
    return tuple(log.stat().st_mtime_ns if log.is_dir() else None for log in logs)
