"""The ledger's writer: replies are committed as they come, a second after they arrived at the latest."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from deltalake import DeltaTable

from contracts.contract import Row
from contracts.tables import CALLS
from core.errors import EvalakeError, LakeError
from storage import ledger
from storage.lake import Lake

COMMIT_AFTER_SECONDS = 0.5  # how long the oldest reply waits; with the commit itself it stays under a second
COMMIT_AFTER_ROWS = 300


class LedgerWriter(AbstractContextManager["LedgerWriter"]):
    """Takes replies from any thread and commits them in order, in few commits, from a thread of its own.

    Once a commit has failed, every further call raises that error: no reply is taken that cannot be kept.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table: DeltaTable | None = None  # opened once: the longer its log, the longer that takes
        self._changed = threading.Condition()
        self._waiting: list[Row] = []
        self._oldest = 0.0  # monotonic time at which the first waiting row came
        self._taken = self._committed = self._commits = 0
        self._urgent = self._closed = False
        self._error: EvalakeError | None = None
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether a commit has failed, after which nothing more is taken."""
        return self._error is not None

    def put(self, row: Row) -> None:
        """Hand over one reply."""
        with self._changed:
            self._raise_if_failed()
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting.append(row)
            self._taken += 1
            if len(self._waiting) in (1, COMMIT_AFTER_ROWS):
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything that was handed over before is committed."""
        with self._changed:
            target = self._taken
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._committed >= target or self._error is not None)
            self._raise_if_failed()

    def close(self) -> None:
        """Commit what waits and end the thread."""
        with self._changed:
            self._closed = self._urgent = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_if_failed()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (rows := self._next()) is not None:
            if not self._try(lambda rows=rows: self._commit(rows)):  # type: ignore[misc]
                return
            with self._changed:
                self._committed += len(rows)
                self._commits += 1
                self._changed.notify_all()
            if self._commits % ledger.COMPACT_EVERY == 0 and not self._try(lambda: ledger.compact(self._lake)):
                return

    def _commit(self, rows: list[Row]) -> None:
        if self._table is None:
            self._table = self._lake.ensure(CALLS)
        ledger.append(self._lake, rows, self._table)

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - whatever it is, a panic too, it is raised to every producer
            failure = error if isinstance(error, EvalakeError) else LakeError(f"the ledger failed: {error}")
            with self._changed:
                self._error = failure
                self._changed.notify_all()
            return False
        return True

    def _next(self) -> list[Row] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            due = self._oldest + COMMIT_AFTER_SECONDS
            while not self._urgent and len(self._waiting) < COMMIT_AFTER_ROWS:
                if (left := due - time.monotonic()) <= 0:
                    break
                self._changed.wait(left)
            rows, self._waiting = self._waiting, []
            self._urgent = self._closed
            return rows
