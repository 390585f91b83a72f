"""A contract's row rules as a Great Expectations suite; rules over whole tables are the audit's alone.

Great Expectations takes seconds to import, so it is imported on first use.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import polars as pl

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import require_schema
from evalake.contracts.engines.sql import describe
from evalake.contracts.rule import WHITE_SPACE, Kind, Rule, Severity
from evalake.core.errors import ContractError

_ROW = "row_index"
_RULE = "rule_id"
# The context and Python's warning filters are global to the process
_ONE_AT_A_TIME = threading.Lock()


@cache
def expectations(contract: Contract) -> Any:
    """Build the `great_expectations.ExpectationSuite` of the contract's row rules.

    Each expectation has its rule's id in `meta`. The suite is cached: do not change it.
    """
    with _quiet():
        import great_expectations

        return great_expectations.ExpectationSuite(
            name=contract.table, expectations=[*map(_expectation, contract.rules)]
        )


def failing_rows(frame: pl.DataFrame, contract: Contract) -> Mapping[str, frozenset[int]]:
    """Check a frame against the row rules; returns the numbers (from 0) of the rows that break each, by rule id.

    Raises SchemaMismatchError for a missing column or another type, and ContractError where Great Expectations could
    not evaluate an expectation.
    """
    require_schema(frame, contract)
    needed = sorted({name for rule in contract.rules for name in rule.columns})
    # It has no expectations of lists, whose rules are about their lengths
    columns = (pl.col(name).list.len() if contract.column[name].base is list else name for name in needed)
    outcome = run_suite(frame.select(columns), expectations(contract))
    return {
        rule_id: frozenset(row[_ROW] for row in result.result.get("unexpected_index_list") or ())
        for rule_id, result in outcome.items()
    }


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


def _expectation(rule: Rule) -> Any:
    library: Any = import_module("great_expectations.expectations")  # it exports no names explicitly
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
            return library.ExpectColumnValuesToBeInSet(value_set=[0], **common)


def _said_of(rule: Rule) -> dict[str, Any]:
    severity = "warning" if rule.severity is Severity.WARNING else "critical"  # `info` is not used
    return {"meta": {_RULE: rule.id}, "notes": describe(rule), "severity": severity}


def _holds(parameters: Mapping[str, Any]) -> Any:
    from great_expectations.expectations.row_conditions import Column, OrCondition

    # The condition `is_in` takes no booleans
    return OrCondition(conditions=[Column(parameters["other"]) == value for value in parameters["values"]])


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
