"""What benchmarks work on: datasets of made-up commands, the requests a run makes of them, and ledgers of replies."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import write_deltalake

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS
from evalake.core.configuration import PROVIDER
from evalake.models.request import Reply, Request
from evalake.sdk import Item
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerWriter
from evalake.suites.command_guard.suite import SUITE
from evalake.tasks.converse import reply_row

ANSWER = json.dumps({"action": "BLOCK", "reason": "reads the hashes of passwords", "confidence": 0.9})
REPLY = Reply(ANSWER, "stop", "guard", 900, 0, 25, 0, 0.0001, 250.0)
MODEL = "hosted_vllm/guard"
FILL_ROWS = 50_000
CATEGORIES = ("file-read", "file-write", "shell", "reverse-shell")


def write_commands(file: Path, count: int) -> Path:
    """Write a dataset of `count` different commands, half of them malicious."""
    with file.open("w") as lines:
        for number in range(count):
            harmful = number % 2 == 0
            sample = {
                "sample_id": f"s{number}",
                "command": f"{'cat /etc/shadow' if harmful else 'ls -la /home/me'} # {number:07d}",
                "label": "malicious" if harmful else "harmless",
                "category": CATEGORIES[number % len(CATEGORIES)] if harmful else None,
            }
            lines.write(json.dumps(sample) + "\n")
    return file


def requests(dataset: Path, model: str) -> Iterator[Request]:
    """Yield the requests that a run of the dataset makes of the model, in order."""
    for sample in SUITE.data.read(str(dataset)).samples:
        asked = SUITE.conversation.next_request(Item(sample, model), (), SUITE.options)
        assert asked is not None
        yield asked


def write_prompts(file: Path, dataset: Path, model: str) -> Path:
    """Write the requests of a run of the dataset for other tools: a line of JSON with the messages of each request."""
    with file.open("w") as lines:
        for asked in requests(dataset, model):
            lines.write(json.dumps([dict(message) for message in asked.messages]) + "\n")
    return file


def request(number: int) -> Request:
    """Make the request of this number; a short one, so that a million of them fit on any disk."""
    return Request(MODEL, ({"role": "user", "content": f"cat /etc/shadow # {number:07d}"},), {})


def rows_of(numbers: Iterable[int]) -> list[Mapping[str, Any]]:
    """Make the ledger row of a reply to each of these requests."""
    return [_row(request(number)) for number in numbers]


def fill(lake: Lake, rows: int) -> None:
    """Put replies to the first requests into a new ledger, in files as large as compaction makes them.

    They are the rows that `ledger.append` would write from `rows_of`, which takes minutes for ten million.
    """
    table = lake.ensure(CALLS)
    one = conform([{**_row(request(0)), "ledger_version": 0}], CALLS)
    before, after = request(0).canonical.decode().split(f"{0:07d}")
    for first in range(0, rows, FILL_ROWS):
        asked = [f"{before}{number:07d}{after}" for number in range(first, min(first + FILL_ROWS, rows))]
        hashes = [hashlib.sha256(text.encode()).hexdigest() for text in asked]
        others = one.drop("request", "prompt_hash").with_columns(ledger_version=pl.lit(table.version() + 1, pl.Int64))
        frame = pl.DataFrame({"request": asked, "prompt_hash": hashes}).join(others, how="cross")
        replies = conform(frame, CALLS).to_arrow()
        write_deltalake(table, replies, mode="append", writer_properties=ledger.COMPACTED)


def remember(lake: Lake, asked: Iterable[Request], endpoint: str = PROVIDER) -> None:
    """Put a reply of the endpoint to every request into the ledger, with the writer that runs use."""
    with LedgerWriter(lake) as writer:
        for each in asked:
            writer.put(_row(each, endpoint))


def _row(asked: Request, endpoint: str = PROVIDER) -> Mapping[str, Any]:
    return reply_row(asked, ledger.Key(asked.prompt_hash, 0, endpoint), 0, REPLY, "earlier")
