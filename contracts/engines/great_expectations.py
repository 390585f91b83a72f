"""A contract as a Great Expectations suite, with all its rules.

Great Expectations takes seconds to import, so it is imported on first use. `custom_expectations` has the two kinds of
rule that it lacks, `empty` and `share_by_group`.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from evalake.contracts.audit import RuleResult, result_of
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import require_schema
from evalake.contracts.engines.sql import describe
from evalake.contracts.rule import WHITE_SPACE, Kind, Rule, Severity, TableKind, TableRule
from evalake.core.errors import ContractError

_ROW = "row_index"
_RULE = "rule_id"
# The context and Python's warning filters are global to the process
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True)
class ExpectationReport:
    """A result for every rule, and the numbers (from 0) of the rows that break it."""

    results: tuple[RuleResult, ...]
    failing_rows: Mapping[str, frozenset[int]]


@cache
def expectations(contract: Contract, *, is_whole: bool = True) -> Any:
    """Build the contract's `great_expectations.ExpectationSuite`, with table rules for a whole table.

    Each expectation has its rule's id in `meta`. The suite is cached: do not change it.
    """
    with _quiet():
        import great_expectations

        table_rules = contract.table_rules if is_whole else ()
        made = [*map(_row_expectation, contract.rules), *map(_table_expectation, table_rules)]
        return great_expectations.ExpectationSuite(name=contract.table, expectations=made)


def validate(frame: pl.DataFrame, contract: Contract, *, is_whole: bool = True) -> ExpectationReport:
    """Check a frame against the row rules and, if it is a whole table, the table rules.

    Raises SchemaMismatchError for a missing column or another type, and ContractError where Great Expectations could
    not evaluate an expectation.
    """
    require_schema(frame, contract)
    table_rules = contract.table_rules if is_whole else ()
    rules: list[Rule | TableRule] = [*contract.rules, *table_rules]
    needed = sorted({name for rule in rules for name in rule.columns})
    outcome = run_suite(frame.select(needed or contract.key), expectations(contract, is_whole=is_whole))
    failing = {rule_id: _failing_rows(result) for rule_id, result in outcome.items()}
    row_results = [result_of(rule, frame.height, len(failing[rule.id])) for rule in contract.rules]
    table_results = [
        result_of(rule, frame.height, len(failing[rule.id]), passed=outcome[rule.id].success) for rule in table_rules
    ]
    return ExpectationReport((*row_results, *table_results), failing)


def run_suite(frame: pl.DataFrame, suite: Any) -> Mapping[str, Any]:
    """Compute each rule's `ExpectationValidationResult` by rule id, with all failing rows of broken rules.

    Raises ContractError where an expectation crashed, which Great Expectations reports as bad data.
    """
    numbered = frame.with_row_index(_ROW).to_pandas(use_pyarrow_extension_array=True)
    with _quiet():
        from great_expectations.core.batch import Batch
        from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
        from great_expectations.validator.validator import Validator

        # A data source would hash the whole frame twice
        batch: Any = numbered
        validator = Validator(PandasExecutionEngine(), data_context=_context(), batches=[Batch(batch)])
        wanted = suite.expectation_configurations
        results = _by_rule(validator.graph_validate(wanted, {"result_format": "BOOLEAN_ONLY"}))
        if broken := [each for each in wanted if not results[each.meta[_RULE]].success]:
            # For all rules, this would take more than twice as long
            with_rows = {"result_format": "COMPLETE", "unexpected_index_column_names": [_ROW]}
            results |= _by_rule(validator.graph_validate(broken, {"result_format": with_rows}))
    for rule_id, result in results.items():
        _require_evaluated(rule_id, result.exception_info)
    return results


def _by_rule(outcome: Iterable[Any]) -> dict[str, Any]:
    return {result.expectation_config.meta[_RULE]: result for result in outcome}


@cache
def _context() -> Any:
    """Build an ephemeral context: nothing on disk, no telemetry, no progress bars."""
    import great_expectations
    from great_expectations.data_context.types import base

    configuration = base.DataContextConfig(
        store_backend_defaults=base.InMemoryStoreBackendDefaults(),
        progress_bars=base.ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    return great_expectations.get_context(mode="ephemeral", project_config=configuration)


def _row_expectation(rule: Rule) -> Any:
    library, own = _libraries()
    common, parameters = {"column": rule.column, **_said_of(rule)}, rule.parameters
    match rule.kind:
        case Kind.PRESENT:
            return library.ExpectColumnValuesToNotBeNull(**common)
        case Kind.FINITE:
            largest = sys.float_info.max
            return library.ExpectColumnValuesToBeBetween(min_value=-largest, max_value=largest, **common)
        case Kind.NOT_BLANK:
            return library.ExpectColumnValuesToMatchRegex(regex=f"[^{WHITE_SPACE}]", **common)
        case Kind.ONE_OF:
            return library.ExpectColumnValuesToBeInSet(value_set=list(parameters["values"]), **common)
        case Kind.BETWEEN:
            bounds = {"min_value": parameters["minimum"], "max_value": parameters["maximum"]}
            return library.ExpectColumnValuesToBeBetween(**bounds, **common)
        case Kind.MATCHES:
            # Here the end of the string is written \Z, not \z as in Polars: pandas follows Python's notation.
            return library.ExpectColumnValuesToMatchRegex(regex=rf"\A(?:{parameters['pattern']})\Z", **common)
        case Kind.NOT_ABOVE:
            return library.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=parameters["other"],
                column_B=rule.column,
                or_equal=True,
                ignore_row_if="either_value_is_missing",
                **_said_of(rule),
            )
        case Kind.PRESENT_WHEN:
            return library.ExpectColumnValuesToNotBeNull(row_condition=_holds(parameters), **common)
        case Kind.ABSENT_WHEN:
            return library.ExpectColumnValuesToBeNull(row_condition=_holds(parameters), **common)
        case Kind.EMPTY:
            return own.ExpectColumnValuesToBeEmptyLists(**common)


def _table_expectation(rule: TableRule) -> Any:
    library, own = _libraries()
    parameters, common = rule.parameters, _said_of(rule)
    match rule.kind:
        case TableKind.UNIQUE if len(parameters["columns"]) == 1:
            return library.ExpectColumnValuesToBeUnique(column=parameters["columns"][0], **common)
        case TableKind.UNIQUE:
            return library.ExpectCompoundColumnsToBeUnique(
                column_list=list(parameters["columns"]), ignore_row_if="any_value_is_missing", **common
            )
        case TableKind.ROW_COUNT:
            bounds = {"min_value": parameters["minimum"], "max_value": parameters["maximum"]}
            return library.ExpectTableRowCountToBeBetween(**bounds, **common)
        case TableKind.SHARE_BY_GROUP:
            return own.ExpectColumnPairShareInGroup(
                column_A=parameters["column"],
                column_B=parameters["group"],
                values=list(parameters["values"]),
                maximum=parameters["maximum"],
                ignore_row_if="neither",
                **common,
            )


def _libraries() -> tuple[Any, Any]:
    """Import the expectations of Great Expectations, and our own."""
    from great_expectations import expectations as library

    from evalake.contracts.engines import custom_expectations

    return library, custom_expectations


def _said_of(rule: Rule | TableRule) -> dict[str, Any]:
    severity = "warning" if rule.severity is Severity.WARNING else "critical"  # `info` is not used
    return {"meta": {_RULE: rule.id}, "notes": describe(rule), "severity": severity}


def _holds(parameters: Mapping[str, Any]) -> Any:
    from great_expectations.expectations.row_conditions import Column, OrCondition

    # The condition `is_in` takes no booleans
    return OrCondition(conditions=[Column(parameters["other"]) == value for value in parameters["values"]])


def _failing_rows(result: Any) -> frozenset[int]:
    return frozenset(row[_ROW] for row in result.result.get("unexpected_index_list") or ())


def _require_evaluated(rule_id: str, exception_info: Mapping[str, Any]) -> None:
    # One description, or one for each failed metric
    described = [exception_info] if "raised_exception" in exception_info else list(exception_info.values())
    for exception in described:
        if exception["raised_exception"]:
            message = " ".join(str(exception["exception_message"]).split())[:300]
            raise ContractError(f"Great Expectations could not evaluate the rule {rule_id}: {message}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings and log lines of Great Expectations in the block."""
    logger = logging.getLogger("great_expectations")
    with _ONE_AT_A_TIME, warnings.catch_warnings(action="ignore"):
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)
