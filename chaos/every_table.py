"""Rows for every table that there is: new ones, sound by their contracts, and a lake that has some in each table."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalake.admin.maintain import migrate
from evalake.contracts.contract import Column, Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import HASH, Kind
from evalake.contracts.tables.metrics import DAY_IS_DATE
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.registry import all_contracts
from tests.golden.lakes.archives import ARCHIVES, unpack

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
_MATCHING: Mapping[str, Callable[[str], str]] = {  # by pattern: makes a text that matches it
    HASH: lambda text: hashlib.sha256(text.encode()).hexdigest(),
    DAY_IS_DATE.parameters["pattern"]: lambda _: f"{NOON:%Y-%m-%d}",
}
_READ = {"pinned_versions": "{}"}  # JSON that maintenance reads
_PLAIN = {float: 0.5, bool: False, datetime: NOON, list: []}


def sound_row(contract: Contract, number: int) -> dict[str, Any]:
    """Make a row that keeps the contract's rules; rows of different numbers have different keys."""
    return {column.name: _value(contract, column, number) for column in contract.columns}


def lake_of_every_table(folder: Path) -> Lake:
    """Migrate the newest archived lake, and land one row in each table that it does not have."""
    unpack(ARCHIVES[-1], folder)
    lake = Lake(str(folder / "lake"))
    migrate(lake)
    for contract in all_contracts():
        if not lake.exists(contract):
            land(lake, contract, conform([sound_row(contract, 1)], contract))
    return lake


def _value(contract: Contract, column: Column, number: int) -> Any:
    if column.nullable and not _is_needed(contract, column, number):
        return None
    if column.name in _READ:
        return _READ[column.name]
    if column.base is int:
        return number if column.name in contract.key else 1
    if column.base is not str:
        return _PLAIN[column.base]
    if column.allowed:
        return column.allowed[0]
    text = column.name if column.name in contract.partition_by else f"{column.name} {number}"
    rules = [rule for rule in contract.rules if (rule.column, rule.kind) == (column.name, Kind.MATCHES)]
    return _MATCHING[rules[0].parameters["pattern"]](text) if rules else text


def _is_needed(contract: Contract, column: Column, number: int) -> bool:
    """Tell whether the row's other values require a value of a column that may be null."""
    conditions = [r.parameters for r in contract.rules if (r.column, r.kind) == (column.name, Kind.PRESENT_WHEN)]
    return any(_value(contract, contract.column[each["other"]], number) in each["values"] for each in conditions)
