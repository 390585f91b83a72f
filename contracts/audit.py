"""The audit: Polars masks that split good rows from bad ones, and name the rules that a bad row breaks."""

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
    """Name a rule's outcome as all reports do: a broken rule of severity `warning` is a warning."""
    if passed:
        return "kept"
    return "warning" if severity == Severity.WARNING else "broken"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule on one frame. A broken table rule may have no failing row."""

    rule_id: str
    severity: Severity
    dimension: Dimension
    passed: bool
    rows_checked: int
    rows_failed: int
    message: str | None = None  # None where the rule was kept

    @property
    def outcome(self) -> Outcome:
        """The outcome of the rule."""
        return outcome_of(self.severity, passed=self.passed)


@dataclass(frozen=True, slots=True)
class Audit:
    """A frame, checked against its contract.

    `good` and `bad` are the rows of the frame, in its order. `bad` has the column `broken`: the ids of the `error` and
    `critical` rules that the row breaks. Table rules were checked on `good`.
    """

    table: str
    good: pl.DataFrame
    bad: pl.DataFrame
    results: tuple[RuleResult, ...]


def audit(frame: pl.DataFrame, contract: Contract) -> Audit:
    """Check every row against the row rules, and the good rows against the table rules.

    The frame has the contract's columns and types (see `conform`); other columns are passed through. A broken
    `warning` is counted, and the row stays good. Raises SchemaMismatchError for a missing column or another type.
    """
    require_schema(frame, contract)
    kept = kept_rules(frame, contract)
    refusing = [rule.id for rule in contract.rules if rule.severity is not Severity.WARNING]
    is_good = kept.select(pl.all_horizontal(refusing)).to_series()
    good, bad = frame.filter(is_good), frame.filter(~is_good)
    names = pl.concat_list(pl.when(~pl.col(rule_id)).then(pl.lit(rule_id)) for rule_id in refusing)
    broken = kept.filter(~is_good).select(names.list.drop_nulls().alias(BROKEN))
    failed = kept.select((~pl.all()).sum()).row(0, named=True)
    row_results = tuple(result_of(rule, frame.height, failed[rule.id]) for rule in contract.rules)
    return Audit(contract.table, good, bad.hstack(broken), (*row_results, *audit_table(good, contract)))


def kept_rules(frame: pl.DataFrame, contract: Contract) -> pl.DataFrame:
    """Compute a boolean column for each row rule, named by its id: whether the row keeps the rule."""
    return frame.select(keeps(rule, contract).alias(rule.id) for rule in contract.rules)


def audit_table(frame: pl.DataFrame, contract: Contract) -> tuple[RuleResult, ...]:
    """Check the whole frame against the table rules: unique keys, row counts, shares by group."""
    return tuple(_table_result(frame, rule) for rule in contract.table_rules)


def require(audit: Audit) -> None:
    """Raise ContractError where the audit broke a critical rule, so that nothing is published."""
    broken = [
        result.message or result.rule_id
        for result in audit.results
        if result.severity is Severity.CRITICAL and not result.passed
    ]
    if broken:
        raise ContractError(f"table {audit.table}: nothing was published, because {'; '.join(broken)}")


def keeps(rule: Rule, contract: Contract) -> pl.Expr:
    """Build an expression that is true in rows that keep the rule, else false, and never null."""
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
    """Build the result of a rule that `failed` of `checked` rows break. `passed` overrides `failed == 0`."""
    kept = failed == 0 if passed is None else passed
    which = f"{failed} of {checked} rows break" if failed else f"a table of {checked} rows breaks"
    message = None if kept else f"{which} the rule that {describe(rule)}"
    return RuleResult(rule.id, rule.severity, rule.dimension, kept, checked, failed, message)


def _not_nan(name: str, contract: Contract) -> pl.Expr:
    # Polars sorts NaN above every number; contracts follow SQL and IEEE, where every comparison with NaN is false
    return pl.col(name).is_not_nan() if contract.column[name].base is float else pl.lit(True)


def _holds(name: str, values: tuple[object, ...]) -> pl.Expr:
    return pl.col(name).is_in(list(values)).fill_null(False)


def _table_result(frame: pl.DataFrame, rule: TableRule) -> RuleResult:
    parameters = rule.parameters
    match rule.kind:
        case TableKind.UNIQUE:
            # As in SQL, a row with a null in its key is unique
            known = pl.all_horizontal(pl.col(name).is_not_null() for name in parameters["columns"])
            repeated = pl.struct(parameters["columns"]).is_duplicated() & known
            return result_of(rule, frame.height, frame.select(repeated.sum()).item())
        case TableKind.ROW_COUNT:
            minimum, maximum = parameters["minimum"], parameters["maximum"]
            enough = minimum is None or frame.height >= minimum
            surplus = 0 if maximum is None else max(0, frame.height - maximum)
            return result_of(rule, frame.height, surplus, passed=enough and not surplus)
        case TableKind.SHARE_BY_GROUP:
            hit = _holds(parameters["column"], parameters["values"])
            above = hit.mean().over(parameters["group"]) > parameters["maximum"]
            return result_of(rule, frame.height, frame.select((hit & above).sum()).item())
