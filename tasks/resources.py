"""What all batches of a process share: one model client, and one ledger writer for each lake."""

import threading
from typing import TYPE_CHECKING

from contracts.configuration import Configuration
from contracts.hashing import content_hash
from storage.lake import Lake
from storage.ledger_writer import LedgerWriter

if TYPE_CHECKING:
    from providers.client import Client

_lock = threading.Lock()
_clients: dict[str, "Client"] = {}
_writers: dict[str, LedgerWriter] = {}


def shared_client(configuration: Configuration) -> "Client":
    """The process's client for a configuration: its limits hold across all batches."""
    from providers.client import Client

    key = content_hash(configuration.model_dump())
    with _lock:
        if key not in _clients:
            _clients[key] = Client(configuration)
        return _clients[key]


def ledger_writer(lake: Lake) -> LedgerWriter:
    """The process's writer for a lake's ledger; a new one where the last one failed."""
    key = content_hash([lake.uri, dict(lake.storage_options)])
    with _lock:
        if key not in _writers or _writers[key].failed:
            _writers[key] = LedgerWriter(lake)
        return _writers[key]
