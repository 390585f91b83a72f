"""The resources of a process's batches: a model client for each run, a ledger writer for each lake; and their end."""

import asyncio
import atexit
import ctypes
import gc
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from evalake.core.errors import EvalakeError
from evalake.models.attempts import Breakers
from evalake.models.client import Client
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerWriter, reply_lengths
from evalake.suites.registry import baselines
from evalake.tasks.runtime.budget import Budget
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import is_overtaken
from evalake.tasks.runtime.server import read_secret

LEASE_SECONDS = 4.0  # shorter than PATIENCE_SECONDS, so that old leases have expired when a new attempt issues calls
GC_THRESHOLD = (50_000, 10, 10)  # for `gc.set_threshold`
KNOWN_ENDED = 1000  # ended attempts that a process remembers
M_MMAP_THRESHOLD = -3  # of the C library: from how many bytes on memory is the system's own
IDLE_CLIENTS = 4  # clients that a Dask worker keeps, because it does not learn of the end of a run

_lock = threading.Lock()
_clients: dict[tuple[str, str], "_Shared"] = {}
_over: deque[tuple[str, str]] = deque(maxlen=KNOWN_ENDED)
_writers: dict[Lake, LedgerWriter] = {}
_breakers: defaultdict[Lake, Breakers] = defaultdict(dict)  # of work without attempts, like scorings on demand


class RunOverError(EvalakeError):
    """The attempt of a run has ended, so that its remaining batches make no more calls."""


class Lease:
    """The right of an attempt to issue calls, which lasts for LEASE_SECONDS after a search for a newer attempt.

    After a pause of the process, like the sleep of a laptop, it has expired, and the attempt searches again.
    """

    def __init__(self, lake: Lake, run_id: str, started_at: datetime | None) -> None:
        self._lake, self._run_id, self._started_at = lake, run_id, started_at
        self._looked_at = 0.0  # by the wall clock, which also counts a machine's sleep
        self._looking = asyncio.Lock()

    async def holds(self) -> bool:
        """Tell whether the attempt may issue calls; after the lease has expired, search for a newer attempt."""
        if self._started_at is None:
            return True
        async with self._looking:  # concurrent calls wait for one search
            if abs(time.time() - self._looked_at) < LEASE_SECONDS:
                return True
            self._looked_at = time.time()
            # An unreachable lake is read the next time
            with suppress(EvalakeError, pl.exceptions.PolarsError, OSError):
                if await asyncio.to_thread(is_overtaken, self._lake, self._run_id, self._started_at):
                    self._looked_at = 0.0
                    return False
            return True


@dataclass(eq=False)
class _Shared:
    client: Client
    lease: Lease
    budget: Budget | None = None
    users: int = 0


@contextmanager
def client_of(context: RunContext) -> Iterator[Client]:
    """Yield the process's client for an attempt of a run, with limits for all its batches.

    Closes unused clients above IDLE_CLIENTS, the oldest first. Raises RunOverError after `end_attempt`.
    """
    key = (context.run_id, context.attempt)
    with _lock:
        if key in _over:
            raise RunOverError(f"the run {context.run_id} is over: it makes no more calls")
        shared = _clients.pop(key, None) or _begin(context)
        shared.users += 1
        _clients[key] = shared
        idle = [other for other, held in _clients.items() if not held.users]
        surplus = [_clients.pop(other).client for other in idle[: max(0, len(idle) - IDLE_CLIENTS)]]
    for client in surplus:
        client.close()
    try:
        yield shared.client
    finally:
        with _lock:
            shared.users -= 1


def budget_of(context: RunContext) -> Budget | None:
    """Return this process's part of a run's ceiling, while its client is in use; None without a ceiling."""
    with _lock:
        return _clients[context.run_id, context.attempt].budget


def lease_of(context: RunContext) -> Lease:
    """Return the lease of an attempt, while its client is in use."""
    with _lock:
        return _clients[context.run_id, context.attempt].lease


def release_client(context: RunContext) -> None:
    """Close this process's client of an attempt, if there is one."""
    with _lock:
        shared = _clients.pop((context.run_id, context.attempt), None)
    if shared is not None:
        shared.client.close()
        if shared.budget is not None:
            shared.budget.abandon()


def end_attempt(context: RunContext) -> None:
    """Release the client of an attempt for good: its running calls are cancelled, and its batches make no others."""
    with _lock:
        _over.append((context.run_id, context.attempt))
    release_client(context)


def _begin(context: RunContext) -> _Shared:
    breakers = None if context.started_at else _breakers[context.lake]
    client = Client(context.configuration, read_secret=read_secret, baselines=baselines(), breakers=breakers)
    lease = Lease(context.lake, context.run_id, context.started_at)
    if not context.ceiling:
        return _Shared(client, lease)
    lengths = reply_lengths(context.lake) if context.ceiling.usd is not None else {}
    longest = {model: known.longest for model, known in lengths.items()}
    flush = lambda: ledger_writer(context.lake).flush()  # noqa: E731 - the writer may change
    budget = Budget(context.lake, context.run_id, context.ceiling, context.configuration, flush, longest)
    return _Shared(client, lease, budget)


def stop_calls(context: RunContext, reason: str) -> None:
    """Begin no further call for an attempt of a run; running calls go on."""
    with _lock:
        _over.append((context.run_id, context.attempt))
        shared = _clients.get((context.run_id, context.attempt))
    if shared is not None:
        shared.client.end_calls(reason)


def is_over(context: RunContext) -> bool:
    """Tell whether an attempt of a run has ended or has to end."""
    return (context.run_id, context.attempt) in _over


# These take no lock, because a signal handler calls them


def end_calls(reason: str) -> None:
    """Begin no further call in this process; running calls go on."""
    for shared in list(_clients.values()):
        shared.client.end_calls(reason)


def calls_in_flight() -> int:
    """Count the calls of this process whose replies are not yet with their writer."""
    return sum(shared.client.in_flight for shared in list(_clients.values()))


def end_writers() -> None:
    """Commit the replies of every writer of this process, and close the writers."""
    for writer in list(_writers.values()):
        if not writer.failed:
            writer.close()


@atexit.register
def _close_clients() -> None:
    """Close the remaining clients before their threads stop at the exit, after which closing hangs."""
    for shared in list(_clients.values()):
        shared.client.close()


def ledger_writer(lake: Lake) -> LedgerWriter:
    """Return the process's writer for a lake's ledger; a new one after a failure."""
    with _lock:
        if lake not in _writers or _writers[lake].failed:
            _writers[lake] = LedgerWriter(lake)
        return _writers[lake]


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely and without the loaded modules: a rerun takes a quarter less time."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def return_arrays() -> None:
    """Return each freed array of a megabyte to the system at once, where the C library can: else it keeps many."""
    if (choose := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        choose(M_MMAP_THRESHOLD, 2**20)


def return_memory() -> None:
    """Return freed memory to the system, where the C library can: a twelfth of what a walk of many samples holds."""
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
