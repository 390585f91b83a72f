"""Rules as SQL conditions in standard SQL, as CHECK constraints, and in words."""

import sys
from collections.abc import Mapping
from typing import Any

from evalake.contracts.contract import Contract
from evalake.contracts.rule import WHITE_SPACE, Kind, Rule, Severity, TableRule
from evalake.core.files import tables_beside

_LARGEST = repr(sys.float_info.max)


def condition(rule: Rule, contract: Contract) -> str | None:
    """Build a SQL condition that is true for a row that keeps the rule, else false, and never null.

    None for `matches`: SQL engines share no syntax for regular expressions.
    """
    column, parameters = rule.column, rule.parameters
    other: Any = parameters.get("other")
    match rule.kind:
        case Kind.PRESENT:
            return f"{column} IS NOT NULL"
        case Kind.FINITE:
            # Statistics, by which engines skip files, leave out NaN
            return f"{column} IS NULL OR (NOT isnan({column}) AND {column} >= -{_LARGEST} AND {column} <= {_LARGEST})"
        case Kind.NOT_BLANK:
            return f"{column} IS NULL OR trim(BOTH {literal(WHITE_SPACE)} FROM {column}) <> ''"
        case Kind.ONE_OF:
            return f"{column} IS NULL OR {column} IN {_values(parameters['values'])}"
        case Kind.BETWEEN:
            bounds = (("minimum", ">="), ("maximum", "<="))
            tests = [
                f"{column} {sign} {literal(parameters[name])}" for name, sign in bounds if parameters[name] is not None
            ]
            return f"{column} IS NULL OR ({' AND '.join((*_not_nan(contract, column), *tests))})"
        case Kind.NOT_ABOVE:
            ordered = " AND ".join((*_not_nan(contract, column, other), f"{column} <= {other}"))
            return f"{column} IS NULL OR {other} IS NULL OR ({ordered})"
        case Kind.PRESENT_WHEN:
            return f"{column} IS NOT NULL OR {other} IS NULL OR {other} NOT IN {_values(parameters['values'])}"
        case Kind.ABSENT_WHEN:
            return f"{column} IS NULL OR {other} IS NULL OR {other} NOT IN {_values(parameters['values'])}"
        case Kind.EMPTY:
            return f"{column} IS NULL OR cardinality({column}) = 0"
        case Kind.MATCHES:
            return None


def literal(value: Any) -> str:
    """Write a string, boolean or number as a SQL literal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _values(values: tuple[Any, ...]) -> str:
    return f"({', '.join(map(literal, values))})"


def _not_nan(contract: Contract, *columns: str) -> tuple[str, ...]:
    return tuple(f"NOT isnan({name})" for name in columns if contract.column[name].base is float)


_PHRASES = tables_beside(__file__, "phrases.toml")


def describe(rule: Rule | TableRule) -> str:
    """Describe the rule's condition, like `cost_usd is at least 0`."""
    words = {"column": next(iter(rule.columns), ""), **rule.parameters, "columns": ", ".join(rule.columns)}
    if "values" in words:
        words["values"] = _either(words["values"])
    if "minimum" in words:
        words["bounds"] = _bounds(words["minimum"], words["maximum"])
    return str(_PHRASES[rule.kind]).format(**words)


def _either(values: tuple[Any, ...]) -> str:
    return " or ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _bounds(minimum: float | None, maximum: float | None) -> str:
    if minimum is None:
        return f"at most {maximum}"
    if maximum is None:
        return f"at least {minimum}"
    return f"between {minimum} and {maximum}"


def check_constraints(contract: Contract) -> Mapping[str, str]:
    """Build the CHECK constraints of the contract's Delta table by rule id.

    They leave out `present` rules, which are NOT NULL in the schema; `warning` rules, which refuse no row; and
    `matches` rules, because Delta's conditions have no regular expressions.
    """
    rules = (rule for rule in contract.rules if rule.kind is not Kind.PRESENT and rule.severity is not Severity.WARNING)
    conditions = ((rule.id, condition(rule, contract)) for rule in rules)
    return {rule_id: sql for rule_id, sql in conditions if sql is not None}
