"""A writer in a process of its own: lands rows in tables until its input ends, and prints what was acknowledged.

`python -m chaos.writer LAKE TABLE...`: prints a line of JSON for every commit, `{"table": name, "landed": number}` or
`{"refused": sentence}`; for every line on standard input it makes a round of commits, one to each table, after
maintenance where the line is `maintenance`. A reply is appended to the ledger, any other row is landed with
`land`.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from chaos.every_table import sound_row
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS
from evalake.core.errors import EvalakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from evalake.suites.registry import all_contracts
from tests.integration.storage.rows import call, key_of


def main(uri: str, tables: Sequence[str]) -> None:
    """Make a round of commits to the tables for each line of standard input."""
    lake, contracts = Lake(uri), [contract for contract in all_contracts() if contract.table in tables]
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip() == "maintenance":
            _say(lambda: maintain(lake, contracts), {})
        for contract in contracts:
            promise = {"table": contract.table, "landed": number}
            _say(lambda contract=contract, number=number: _write(lake, contract, number), promise)  # type: ignore[misc]
        print(json.dumps({"round": number}), flush=True)


def row_of(contract: Contract, number: int) -> dict[str, Any]:
    """Make the row that a writer lands in a table in the round of that number."""
    return call(number) if contract is CALLS else sound_row(contract, number)


def _write(lake: Lake, contract: Contract, number: int) -> None:
    row = row_of(contract, number)
    if contract is not CALLS:
        land(lake, contract, conform([row], contract))
        return
    ledger.append(lake, [row])
    LedgerIndex.read(lake).fetch([key_of(row)])


def _say(do: Callable[[], object], promise: dict[str, object]) -> None:
    try:
        do()
    except EvalakeError as error:
        promise = {"refused": str(error)}
    print(json.dumps(promise), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
