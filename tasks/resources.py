"""What all batches of a process share: one model client for each run, and one ledger writer for each lake."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from contracts.configuration import Configuration
from contracts.hashing import content_hash
from providers.client import Client
from storage.lake import Lake
from storage.ledger_writer import LedgerWriter

_lock = threading.Lock()
_clients: dict[str, Client] = {}
_writers: dict[str, LedgerWriter] = {}


def client_of(run_id: str, configuration: Configuration) -> Client:
    """The process's client for a run: its limits hold across all batches, and a model it stopped stays stopped."""
    with _lock:
        if run_id not in _clients:
            _clients[run_id] = Client(configuration)
        return _clients[run_id]


def release_client(run_id: str) -> None:
    """Close the run's client, where this process has one: the next run asks a stopped model again."""
    with _lock:
        client = _clients.pop(run_id, None)
    if client is not None:
        client.close()


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
    """Spare Python's garbage collector what is loaded by now, modules mostly: walking through it is a rerun's sixth."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
