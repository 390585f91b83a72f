"""What all batches of a process share: one model client for each run, and one ledger writer for each lake."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from contracts.errors import EvalakeError
from contracts.hashing import content_hash
from providers.client import Client
from storage.lake import Lake
from storage.ledger_writer import LedgerWriter
from tasks.context import RunContext
from tasks.secrets import read_secret

SPARED_THRESHOLD = (50_000, 10, 10)  # for `gc.set_threshold`
IDLE_CLIENTS = 4  # that a process keeps: a Dask worker is not told when a run has ended

_lock = threading.Lock()
_clients: dict[tuple[str, int], "_Shared"] = {}
_over: set[tuple[str, int]] = set()
_writers: dict[str, LedgerWriter] = {}


class RunOverError(EvalakeError):
    """An attempt of a run has ended or was cancelled; a batch of it that is still there makes no more calls."""


@dataclass(eq=False)
class _Shared:
    client: Client
    users: int = 0


@contextmanager
def client_of(context: RunContext) -> Iterator[Client]:
    """The process's client for an attempt of a run: its limits hold across all batches, and a model that it stopped
    stays stopped. Where many runs come by, those that nobody uses are closed, the oldest first.

    Raises RunOverError where `end_attempt` was told of it.
    """
    key = (context.run_id, context.attempt)
    with _lock:
        if key in _over:
            raise RunOverError(f"the run {context.run_id} is over: nothing more is asked for it")
        shared = _clients.pop(key, None) or _Shared(Client(context.configuration, read_secret=read_secret))
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


def release_client(context: RunContext) -> None:
    """Close the client of an attempt of a run, where this process has one."""
    with _lock:
        shared = _clients.pop((context.run_id, context.attempt), None)
    if shared is not None:
        shared.client.close()


def end_attempt(context: RunContext) -> None:
    """Release its client for good: calls on their way are given up, and no batch left behind makes others."""
    with _lock:
        _over.add((context.run_id, context.attempt))
    release_client(context)


def flush_writers() -> None:
    """Commit what every writer of this process holds."""
    for writer in list(_writers.values()):
        if not writer.failed:
            writer.flush()


def ledger_writer(lake: Lake) -> LedgerWriter:
    """The process's writer for a lake's ledger; a new one where the last one failed."""
    key = content_hash([lake.uri, dict(lake.storage_options)])
    with _lock:
        if key not in _writers or _writers[key].failed:
            _writers[key] = LedgerWriter(lake)
        return _writers[key]


@contextmanager
def spared_collector() -> Iterator[None]:
    """Spare Python's garbage collector what is loaded by now, modules mostly: walking through it is a rerun's sixth.

    It also comes by less often, for a run makes many small objects and hardly a cycle: that is another tenth.
    """
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*SPARED_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
