"""Rules as SQL conditions, in the words that standard engines share."""

import sys
from typing import Any

from contracts.contract import Contract
from contracts.patterns import WHITE_SPACE
from contracts.rule import Kind, Rule

_LARGEST = repr(sys.float_info.max)


def condition(rule: Rule, contract: Contract) -> str | None:
    """Build a SQL condition that is true for a row that keeps the rule and false for any other; never null.

    It is None for `matches`: there is no regular expression that all SQL engines read.
    """
    column, parameters = rule.column, rule.parameters
    other: Any = parameters.get("other")
    match rule.kind:
        case Kind.PRESENT:
            return f"{column} IS NOT NULL"
        case Kind.FINITE:
            # NaN has a test of its own: the statistics by which engines skip files do not count it.
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
