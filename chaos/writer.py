"""A writer of its own process: lands rows and appends replies until told to stop, and says what it was promised.

`python -m chaos.writer LAKE`: prints a line of JSON for every commit, `{"landed": key}` or `{"refused": sentence}`; for
every line on standard input it makes a round of commits, and of upkeep where the line is `upkeep`.
"""

import json
import sys
from collections.abc import Callable
from itertools import count, islice

import polars as pl

from contracts.tables import CALLS
from core.errors import EvalakeError
from storage import ledger
from storage.lake import Lake
from storage.landing import land
from storage.ledger import LedgerIndex
from storage.maintenance import maintain
from tests.storage.rows import TOYS, call, key_of, toy

ROUND = 3  # commits of each table


def main(uri: str) -> None:
    """Make the rounds that standard input asks for."""
    lake, numbers = Lake(uri), count(1)
    for line in sys.stdin:
        if line.strip() == "upkeep":
            _say(lambda: maintain(lake, [TOYS, CALLS]), {})
        for number in islice(numbers, ROUND):
            row = call(number, response=f"reply {number}")
            _say(lambda key=f"k{number}": land(lake, TOYS, pl.DataFrame([toy(key)])), {"landed": f"k{number}"})
            _say(lambda row=row: ledger.append(lake, [row]), {"replied": number})
            _say(lambda row=row: LedgerIndex.read(lake).fetch([key_of(row)]), {})
        print(json.dumps({"round": True}), flush=True)


def _say(do: Callable[[], object], promise: dict[str, object]) -> None:
    try:
        do()
    except EvalakeError as error:
        promise = {"refused": str(error)}
    print(json.dumps(promise), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
