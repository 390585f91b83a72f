"""Rules in words: one plain phrase for each, used in messages, quarantine reasons and exported contracts."""

from collections.abc import Mapping
from typing import Any

from contracts.rule import Kind, Rule, TableKind, TableRule


def describe(rule: Rule | TableRule) -> str:
    """Say what the rule demands, such as `cost_usd is at least 0`."""
    return _of_table(rule) if isinstance(rule, TableRule) else _of_row(rule)


def _of_row(rule: Rule) -> str:
    column, parameters = rule.column, rule.parameters
    match rule.kind:
        case Kind.PRESENT:
            return f"{column} is not null"
        case Kind.FINITE:
            return f"{column} is a finite number"
        case Kind.NOT_BLANK:
            return f"{column} holds more than white space"
        case Kind.ONE_OF:
            return f"{column} is {_either(parameters['values'])}"
        case Kind.BETWEEN:
            return f"{column} is {_bounds(parameters)}"
        case Kind.MATCHES:
            return f"{column} is of the form {parameters['pattern']}"
        case Kind.NOT_ABOVE:
            return f"{column} is not above {parameters['other']}"
        case Kind.PRESENT_WHEN:
            return f"{column} is not null where {parameters['other']} is {_either(parameters['values'])}"
        case Kind.ABSENT_WHEN:
            return f"{column} is null where {parameters['other']} is {_either(parameters['values'])}"
        case Kind.EMPTY:
            return f"{column} is an empty list"


def _of_table(rule: TableRule) -> str:
    parameters = rule.parameters
    match rule.kind:
        case TableKind.UNIQUE:
            return f"no two rows agree in {', '.join(parameters['columns'])}"
        case TableKind.ROW_COUNT:
            return f"the number of rows is {_bounds(parameters)}"
        case TableKind.SHARE_BY_GROUP:
            value = f"{parameters['column']} is {_either(parameters['values'])}"
            return f"in no {parameters['group']} do more than {parameters['maximum']:.0%} of the rows say that {value}"


def _either(values: tuple[Any, ...]) -> str:
    return " or ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _bounds(parameters: Mapping[str, Any]) -> str:
    minimum, maximum = parameters["minimum"], parameters["maximum"]
    if minimum is None:
        return f"at most {maximum}"
    if maximum is None:
        return f"at least {minimum}"
    return f"between {minimum} and {maximum}"
