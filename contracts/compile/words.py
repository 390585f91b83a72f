"""Rules in words: one plain phrase for each, used in messages, quarantine reasons and exported contracts."""

from collections.abc import Mapping
from typing import Any

from contracts.rule import Kind, Rule, TableKind, TableRule

_SAID: Mapping[Kind | TableKind, str] = {
    Kind.PRESENT: "{column} is not null",
    Kind.FINITE: "{column} is a finite number",
    Kind.NOT_BLANK: "{column} holds more than white space",
    Kind.ONE_OF: "{column} is {values}",
    Kind.BETWEEN: "{column} is {bounds}",
    Kind.MATCHES: "{column} is of the form {pattern}",
    Kind.NOT_ABOVE: "{column} is not above {other}",
    Kind.PRESENT_WHEN: "{column} is not null where {other} is {values}",
    Kind.ABSENT_WHEN: "{column} is null where {other} is {values}",
    Kind.EMPTY: "{column} is an empty list",
    TableKind.UNIQUE: "no two rows agree in {columns}",
    TableKind.ROW_COUNT: "the number of rows is {bounds}",
    TableKind.SHARE_BY_GROUP: "in no {group} do more than {maximum:.0%} of the rows say that {column} is {values}",
}


def describe(rule: Rule | TableRule) -> str:
    """Say what the rule demands, such as `cost_usd is at least 0`."""
    words = {"column": next(iter(rule.columns), ""), **rule.parameters, "columns": ", ".join(rule.columns)}
    if "values" in words:
        words["values"] = _either(words["values"])
    if "minimum" in words:
        words["bounds"] = _bounds(words["minimum"], words["maximum"])
    return _SAID[rule.kind].format(**words)


def _either(values: tuple[Any, ...]) -> str:
    return " or ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _bounds(minimum: float | None, maximum: float | None) -> str:
    if minimum is None:
        return f"at most {maximum}"
    if maximum is None:
        return f"at least {minimum}"
    return f"between {minimum} and {maximum}"
