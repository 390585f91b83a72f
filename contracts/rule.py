"""Rules as data: conditions on one row, and on a whole table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evalake.core.errors import ContractError


class Severity(StrEnum):
    """The effect of a broken rule: `warning` counts it, `error` quarantines the row, `critical` stops publication."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Dimension(StrEnum):
    """The dimension of data quality that a rule checks, by the Open Data Contract Standard."""

    ACCURACY = "accuracy"
    COMPLETENESS = "completeness"
    CONFORMITY = "conformity"
    CONSISTENCY = "consistency"
    COVERAGE = "coverage"
    UNIQUENESS = "uniqueness"


class Kind(StrEnum):
    """The condition of a row rule on its column, with its parameters."""

    PRESENT = "present"  # not null
    FINITE = "finite"  # neither NaN nor infinite
    NOT_BLANK = "not_blank"  # a string with more than white space
    ONE_OF = "one_of"  # values: the allowed strings
    BETWEEN = "between"  # minimum, maximum: inclusive bounds, either may be None
    MATCHES = "matches"  # pattern: characters, classes, groups, alternatives and repetition, for the whole string
    NOT_ABOVE = "not_above"  # other: a column that this one never exceeds
    PRESENT_WHEN = "present_when"  # other, values: not null where the other column holds one of the values
    ABSENT_WHEN = "absent_when"  # other, values: null where the other column holds one of the values
    EMPTY = "empty"  # an empty list


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on every row of a table.

    A null passes every kind but `present` and `present_when`; NaN breaks `finite`, `between` and `not_above`. Raises
    ContractError for parameters of another kind or an invalid regular expression.
    """

    id: str
    column: str
    kind: Kind
    parameters: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = Severity.ERROR
    dimension: Dimension = Dimension.CONFORMITY

    def __post_init__(self) -> None:
        _require_parameters(self)
        if self.kind is Kind.MATCHES:
            try:
                re.compile(pattern := self.parameters["pattern"])
            except re.error as error:
                raise ContractError(f"the pattern {pattern!r} is not a regular expression: {error}") from error

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule reads: its own, and the one that it is compared with."""
        return (self.column, self.parameters["other"]) if "other" in self.parameters else (self.column,)


class TableKind(StrEnum):
    """The condition of a table rule on all rows together, with its parameters."""

    UNIQUE = "unique"  # columns: no two rows agree in all of them
    ROW_COUNT = "row_count"  # minimum, maximum: inclusive bounds, either may be None
    SHARE_BY_GROUP = "share_by_group"  # column, values, group, maximum: in no group is the share of these values higher


@dataclass(frozen=True, slots=True)
class TableRule:
    """One condition on a whole batch or table version."""

    id: str
    kind: TableKind
    parameters: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = Severity.CRITICAL
    dimension: Dimension = Dimension.COVERAGE

    def __post_init__(self) -> None:
        _require_parameters(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule reads; none where it counts rows."""
        roles = (self.parameters[role] for role in ("column", "group") if role in self.parameters)
        return (*self.parameters.get("columns", ()), *roles)


_PARAMETERS: Mapping[Kind | TableKind, frozenset[str]] = {  # kinds that are missing here take none
    Kind.ONE_OF: frozenset({"values"}),
    Kind.BETWEEN: frozenset({"minimum", "maximum"}),
    Kind.MATCHES: frozenset({"pattern"}),
    Kind.NOT_ABOVE: frozenset({"other"}),
    Kind.PRESENT_WHEN: frozenset({"other", "values"}),
    Kind.ABSENT_WHEN: frozenset({"other", "values"}),
    TableKind.UNIQUE: frozenset({"columns"}),
    TableKind.ROW_COUNT: frozenset({"minimum", "maximum"}),
    TableKind.SHARE_BY_GROUP: frozenset({"column", "values", "group", "maximum"}),
}


def _require_parameters(rule: Rule | TableRule) -> None:
    needed = _PARAMETERS.get(rule.kind, frozenset())
    if set(rule.parameters) != needed:
        names = ", ".join(sorted(needed)) or "none"
        raise ContractError(f"the rule {rule.id} of kind {rule.kind} takes exactly these parameters: {names}")
    if not rule.parameters.get("values", True):
        raise ContractError(f"the rule {rule.id} names no values")
    if needed == {"minimum", "maximum"} and all(bound is None for bound in rule.parameters.values()):
        raise ContractError(f"the rule {rule.id} has no bound: give minimum, maximum or both")


HASH = r"[0-9a-f]{64}"


def hash_rule(column: str) -> Rule:
    """Build the rule that the column holds a SHA-256 in hexadecimal."""
    return Rule(f"{column}_is_sha256", column, Kind.MATCHES, {"pattern": HASH})


def not_negative(column: str, severity: Severity = Severity.ERROR) -> Rule:
    """Build the rule that the column is never below zero."""
    return Rule(f"{column}_not_negative", column, Kind.BETWEEN, {"minimum": 0, "maximum": None}, severity)


def at_least_one(column: str) -> Rule:
    """Build the rule that the column counts from one."""
    return Rule(f"{column}_from_one", column, Kind.BETWEEN, {"minimum": 1, "maximum": None})


def consistent(rule_id: str, column: str, kind: Kind, other: str, *values: Any) -> Rule:
    """Build the rule that the column goes with another one, or with some of its values."""
    parameters = {"other": other, "values": values} if values else {"other": other}
    return Rule(rule_id, column, kind, parameters, dimension=Dimension.CONSISTENCY)


def is_share(column: str) -> Rule:
    """Build the rule that the column is between 0 and 1."""
    return Rule(f"{column}_is_share", column, Kind.BETWEEN, {"minimum": 0, "maximum": 1}, dimension=Dimension.ACCURACY)


TOKEN_RULES = (
    Rule("cached_within_input", "cached_input_tokens", Kind.NOT_ABOVE, {"other": "input_tokens"}, Severity.WARNING),
    Rule("reasoning_in_output", "reasoning_tokens", Kind.NOT_ABOVE, {"other": "output_tokens"}, Severity.WARNING),
)
"""Rules that cached and reasoning tokens are at most the whole."""


def not_blank(column: str) -> Rule:
    """Build the rule that the column holds more than white space."""
    return Rule(f"{column}_not_blank", column, Kind.NOT_BLANK, dimension=Dimension.COMPLETENESS)


# All characters with the Unicode property White_Space, because each engine has a shorter list
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def whole(pattern: str) -> str:
    """Anchor the pattern to the whole string, with line ends, in Rust's notation."""
    return rf"\A(?:{pattern})\z"
