"""A contract as a YAML document of the Open Data Contract Standard."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import yaml

from evalake.contracts.contract import Column, Contract
from evalake.contracts.engines.sql import condition, describe, literal
from evalake.contracts.rule import Kind, Rule, TableKind, TableRule

STANDARD = "v3.2.0"
VERSION = "1.0.0"  # of the contracts; raised when an exported document changes its meaning

_LOGICAL: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    datetime: "timestamp",
}
_PHYSICAL = {**_LOGICAL, int: "bigint", float: "double"}


def odcs_yaml(contract: Contract) -> str:
    """Render the contract as one YAML document, with all rules as quality checks.

    A rule is of type `library` where the standard's metrics can express it; else of type `sql`, a query that counts the
    rows or groups that break it.
    """
    document = {
        "apiVersion": STANDARD,
        "kind": "DataContract",
        "id": f"evalake.{contract.table}",
        "name": contract.table,
        "version": VERSION,
        "status": "active",
        "description": {"purpose": contract.description},
        "schema": [
            {
                "name": contract.table,
                "physicalName": contract.table,
                "physicalType": "table",
                "logicalType": "object",
                "description": contract.description,
                "dataGranularityDescription": (contract.row.__doc__ or "").strip(),
                "properties": [_property(column, contract) for column in contract.columns],
                "quality": [_table_check(rule, contract) for rule in contract.table_rules],
            }
        ],
    }
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    return text


def _property(column: Column, contract: Contract) -> dict[str, Any]:
    checks = [_row_check(rule, contract) for rule in contract.rules if rule.column == column.name]
    return {
        "name": column.name,
        **_types(column),
        "description": column.description,
        "required": not column.nullable,
        **_position("primaryKey", "primaryKeyPosition", column.name, contract.key),
        **_position("partitioned", "partitionKeyPosition", column.name, contract.partition_by),
        **({"enum": [{"value": value} for value in column.allowed]} if column.allowed else {}),
        **({"quality": checks} if checks else {}),
    }


def _types(column: Column) -> dict[str, Any]:
    types: dict[str, Any] = {"logicalType": _LOGICAL[column.element], "physicalType": _PHYSICAL[column.element]}
    if column.base is list:
        return {"logicalType": "array", "physicalType": f"array<{types['physicalType']}>", "items": types}
    return types


def _position(flag: str, position: str, name: str, names: tuple[str, ...]) -> dict[str, Any]:
    return {flag: True, position: names.index(name) + 1} if name in names else {}


def _row_check(rule: Rule, contract: Contract) -> dict[str, Any]:
    match rule.kind:
        case Kind.PRESENT:
            check = {"type": "library", "metric": "nullValues", "mustBe": 0}
        case Kind.ONE_OF:
            check = _invalid_values({"validValues": list(rule.parameters["values"])})
        case Kind.MATCHES:
            check = _invalid_values({"pattern": f"^(?:{rule.parameters['pattern']})$"})
        case _:
            query = f"SELECT COUNT(*) FROM {contract.table} WHERE NOT ({condition(rule, contract)})"
            check = {"type": "sql", "query": query, "mustBe": 0}
    return {**_said_of(rule), **check}


def _invalid_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "library", "metric": "invalidValues", "arguments": arguments, "mustBe": 0}


def _table_check(rule: TableRule, contract: Contract) -> dict[str, Any]:
    parameters = rule.parameters
    match rule.kind:
        case TableKind.UNIQUE:
            arguments = {"properties": list(parameters["columns"])}
            check = {"type": "library", "metric": "duplicateValues", "arguments": arguments, "mustBe": 0}
        case TableKind.ROW_COUNT:
            check = {"type": "library", "metric": "rowCount", **dict(_count_bounds(**parameters))}
        case TableKind.SHARE_BY_GROUP:
            values = ", ".join(map(literal, parameters["values"]))
            share = f"AVG(CASE WHEN {parameters['column']} IN ({values}) THEN 1.0 ELSE 0.0 END)"
            groups = f"SELECT 1 FROM {contract.table} GROUP BY {parameters['group']}"
            query = f"SELECT COUNT(*) FROM ({groups} HAVING {share} > {parameters['maximum']}) AS too_many"
            check = {"type": "sql", "query": query, "mustBe": 0}
    return {**_said_of(rule), **check}


def _count_bounds(minimum: int | None, maximum: int | None) -> Iterator[tuple[str, Any]]:
    # The standard allows one comparison per check
    if minimum is not None and maximum is not None:
        yield "mustBeBetween", [minimum, maximum]
    elif minimum is not None:
        yield "mustBeGreaterOrEqualTo", minimum
    else:
        yield "mustBeLessOrEqualTo", maximum


def _said_of(rule: Rule | TableRule) -> dict[str, str]:
    return {
        "name": rule.id,
        "description": describe(rule),
        "dimension": rule.dimension.value,
        "severity": rule.severity.value,
    }
