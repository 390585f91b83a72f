"""What benchmarks work on: datasets of made-up commands, the requests a run makes of them, and ledgers of replies."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from providers.request import Reply, Request
from storage import ledger
from storage.lake import Lake
from storage.ledger_writer import LedgerWriter
from suites.base import Item
from suites.command_guard.suite import SUITE
from tasks.steps.converse import reply_row

ANSWER = json.dumps({"action": "BLOCK", "reason": "reads the hashes of passwords", "confidence": 0.9})
REPLY = Reply(ANSWER, "stop", "guard", 900, 0, 25, 0, 0.0001, 250.0)
MODEL = "hosted_vllm/guard"
FILL_ROWS = 50_000
CATEGORIES = ("file-read", "file-write", "shell", "reverse-shell")


def write_commands(file: Path, count: int) -> Path:
    """A dataset of that many different commands, half of them malicious."""
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
    """What a run of the dataset asks the model, in order."""
    for sample in SUITE.read_dataset(str(dataset)).samples:
        asked = SUITE.converse(Item(sample, model), (), SUITE.options)
        assert asked is not None
        yield asked


def request(number: int) -> Request:
    """One request of a long row of them; a short one, so that a million of them fit on any disk."""
    return Request(MODEL, ({"role": "user", "content": f"cat /etc/shadow # {number:07d}"},), {})


def rows_of(numbers: Iterable[int]) -> list[ledger.Row]:
    """A reply to each of these requests as the ledger takes it."""
    return [_row(request(number)) for number in numbers]


def fill(lake: Lake, rows: int) -> None:
    """Put replies to the first requests into a new ledger, in files as large as compaction makes them."""
    for first in range(0, rows, FILL_ROWS):
        ledger.append(lake, rows_of(range(first, min(first + FILL_ROWS, rows))))


def remember(lake: Lake, asked: Iterable[Request]) -> None:
    """Put a reply to every request into the ledger by the writer that runs use."""
    with LedgerWriter(lake) as writer:
        for each in asked:
            writer.put(_row(each))


def _row(asked: Request) -> ledger.Row:
    return reply_row(asked, 0, REPLY, "earlier")
