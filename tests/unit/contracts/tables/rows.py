"""A row that keeps its table's contract, made from the contract, and the rules that a change of it breaks."""

from datetime import UTC, datetime, timedelta
from typing import Any

from evalake.contracts.audit import audit
from evalake.contracts.contract import Column, Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import HASH, Kind
from evalake.contracts.tables.metrics import DAY_IS_DATE

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
BEFORE = NOON - timedelta(microseconds=1)
SHA = "0a" * 32
_OF_PATTERN = {HASH: SHA, DAY_IS_DATE.parameters["pattern"]: "2026-11-22"}
_BY_TYPE: dict[type, Any] = {str: "x", int: 1, float: 1.0, bool: True, datetime: NOON, list: []}


def sound(contract: Contract, **values: Any) -> dict[str, Any]:
    """A row with a value in every column, but for those that are given."""
    patterns = {rule.column: rule.parameters["pattern"] for rule in contract.rules if rule.kind is Kind.MATCHES}
    return {column.name: _value(column, patterns.get(column.name)) for column in contract.columns} | values


def broken_by(contract: Contract, **values: Any) -> list[str]:
    """The row rules, warnings too, that are broken with these values in place of sound ones."""
    results = audit(conform([sound(contract, **values)], contract), contract).results[: len(contract.rules)]
    return [result.rule_id for result in results if not result.passed]


def _value(column: Column, pattern: str | None) -> Any:
    if pattern is not None:
        return _OF_PATTERN[pattern]
    return column.allowed[0] if column.allowed else _BY_TYPE[column.base]
