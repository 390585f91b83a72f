"""The audit: Polars masks that split good rows from bad, and say which rule each bad row broke."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from evalake.contracts.contract import BROKEN, Contract
from evalake.contracts.engines.arrow import require_schema
from evalake.contracts.engines.sql import describe
from evalake.contracts.rule import WHITE_SPACE, Dimension, Kind, Rule, Severity, TableKind, TableRule, whole
from evalake.core.errors import ContractError

Outcome: TypeAlias = Literal["kept", "warning", "broken"]


def outcome_of(severity: str, *, passed: bool) -> Outcome:
    """Decide what came of a rule, as every surface says it: a broken rule of the severity `warning` is a warning."""
    if passed:
        return "kept"
    return "warning" if severity == Severity.WARNING else "broken"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """How one rule fared on one frame. A broken rule about the table as a whole may have no failing row."""

    rule_id: str
    severity: Severity
    dimension: Dimension
    passed: bool
    rows_checked: int
    rows_failed: int
    message: str | None = None  # what was found, in words; None where the rule was kept

    @property
    def outcome(self) -> Outcome:
        """What came of the rule."""
        return outcome_of(self.severity, passed=self.passed)


@dataclass(frozen=True, slots=True)
class Audit:
    """A frame held to its contract.

    `good` and `bad` together are the rows that came in, each in the order it came; `bad` has one more column, `broken`,
    a list of the ids of every `error` and `critical` rule that the row broke. Table rules were held to `good`.
    """

    table: str
    good: pl.DataFrame
    bad: pl.DataFrame
    results: tuple[RuleResult, ...]


def audit(frame: pl.DataFrame, contract: Contract) -> Audit:
    """Hold every row to the row rules, and the good rows to the table rules.

    The frame has the contract's columns and types (see `conform`); columns beyond them, such as where a row came
    from, are passed through. A broken `warning` is counted, and makes no row bad.

    Raises SchemaMismatchError where a column is missing or of another type.
    """
    require_schema(frame, contract)
    kept = kept_rules(frame, contract)
    refusing = [rule.id for rule in contract.rules if rule.severity is not Severity.WARNING]
    is_good = kept.select(pl.all_horizontal(refusing)).to_series()
    good, bad = frame.filter(is_good), frame.filter(~is_good)
    # Naming the rules is worth its cost for the bad rows only.
    names = pl.concat_list(pl.when(~pl.col(rule_id)).then(pl.lit(rule_id)) for rule_id in refusing)
    broken = kept.filter(~is_good).select(names.list.drop_nulls().alias(BROKEN))
    failed = kept.select((~pl.all()).sum()).row(0, named=True)
    row_results = tuple(result_of(rule, frame.height, failed[rule.id]) for rule in contract.rules)
    return Audit(contract.table, good, bad.hstack(broken), (*row_results, *audit_table(good, contract)))


def kept_rules(frame: pl.DataFrame, contract: Contract) -> pl.DataFrame:
    """Tell for every row which row rules it keeps: one boolean column for each rule, named by the rule's id."""
    return frame.select(keeps(rule, contract).alias(rule.id) for rule in contract.rules)


def audit_table(frame: pl.DataFrame, contract: Contract) -> tuple[RuleResult, ...]:
    """Hold the frame as a whole to the table rules: unique keys, row counts, shares by group."""
    return tuple(_table_result(frame, rule) for rule in contract.table_rules)


def require(audit: Audit) -> None:
    """Raise ContractError if a critical rule was broken: the batch must not be published."""
    broken = [
        result.message or result.rule_id
        for result in audit.results
        if result.severity is Severity.CRITICAL and not result.passed
    ]
    if broken:
        raise ContractError(f"table {audit.table}: nothing was published, because {'; '.join(broken)}")


def keeps(rule: Rule, contract: Contract) -> pl.Expr:
    """Build an expression that is true in the rows that keep the rule, false in the others, and never null."""
    column, parameters = pl.col(rule.column), rule.parameters
    match rule.kind:
        case Kind.PRESENT:
            return column.is_not_null()
        case Kind.FINITE:
            kept = column.is_finite()
        case Kind.NOT_BLANK:
            kept = column.str.strip_chars(WHITE_SPACE) != ""
        case Kind.ONE_OF:
            kept = column.is_in(list(parameters["values"]))
        case Kind.BETWEEN:
            kept = _not_nan(rule.column, contract)
            if parameters["minimum"] is not None:
                kept &= column >= parameters["minimum"]
            if parameters["maximum"] is not None:
                kept &= column <= parameters["maximum"]
        case Kind.MATCHES:
            kept = column.str.contains(whole(parameters["pattern"]))
        case Kind.NOT_ABOVE:
            other = parameters["other"]
            both_known = column.is_not_null() & pl.col(other).is_not_null()
            numbers = _not_nan(rule.column, contract) & _not_nan(other, contract)
            kept = ~both_known | (numbers & (column <= pl.col(other)))
        case Kind.PRESENT_WHEN:
            kept = column.is_not_null() | ~_holds(parameters["other"], parameters["values"])
        case Kind.ABSENT_WHEN:
            kept = column.is_null() | ~_holds(parameters["other"], parameters["values"])
        case Kind.EMPTY:
            kept = column.list.len() == 0
    return kept.fill_null(True)


def result_of(rule: Rule | TableRule, checked: int, failed: int, passed: bool | None = None) -> RuleResult:
    """Build the result of a rule that `failed` of `checked` rows broke; `passed` where that alone does not tell."""
    kept = failed == 0 if passed is None else passed
    which = f"{failed} of {checked} rows break" if failed else f"a table of {checked} rows breaks"
    message = None if kept else f"{which} the rule that {describe(rule)}"
    return RuleResult(rule.id, rule.severity, rule.dimension, kept, checked, failed, message)


def _not_nan(name: str, contract: Contract) -> pl.Expr:
    # Polars sorts NaN above every number; to a contract it is a broken value, as in SQL's and IEEE's comparisons.
    return pl.col(name).is_not_nan() if contract.column[name].base is float else pl.lit(True)


def _holds(name: str, values: tuple[object, ...]) -> pl.Expr:
    return pl.col(name).is_in(list(values)).fill_null(False)


def _table_result(frame: pl.DataFrame, rule: TableRule) -> RuleResult:
    parameters = rule.parameters
    match rule.kind:
        case TableKind.UNIQUE:
            # As in SQL, a row with a null in its key is like no other.
            known = pl.all_horizontal(pl.col(name).is_not_null() for name in parameters["columns"])
            repeated = pl.struct(parameters["columns"]).is_duplicated() & known
            return result_of(rule, frame.height, frame.select(repeated.sum()).item())
        case TableKind.ROW_COUNT:
            minimum, maximum = parameters["minimum"], parameters["maximum"]
            enough = minimum is None or frame.height >= minimum
            surplus = 0 if maximum is None else max(0, frame.height - maximum)
            return result_of(rule, frame.height, surplus, passed=enough and not surplus)
        case TableKind.SHARE_BY_GROUP:
            # Each row knows its group's share, so that the rows to blame can be counted.
            hit = _holds(parameters["column"], parameters["values"])
            above = hit.mean().over(parameters["group"]) > parameters["maximum"]
            return result_of(rule, frame.height, frame.select((hit & above).sum()).item())
