"""Great Expectations and the Polars masks refuse the same rows; a crash of the engine never looks like bad data."""

import logging
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

from evalake.contracts.audit import audit, keeps
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.engines.great_expectations import expectations, failing_rows, run_suite
from evalake.contracts.rule import Kind, Severity
from evalake.core.errors import ContractError
from evalake.suites.registry import all_contracts
from tests.unit.contracts.examples import EXAMPLE, edge_frame, edges, row
from tests.unit.contracts.strategies import frames

pytestmark = pytest.mark.slow


Failing = Mapping[str, frozenset[int]]


def failing_by_masks(frame: pl.DataFrame, contract: Contract) -> dict[str, frozenset[int]]:
    kept = frame.select(keeps(rule, contract).alias(rule.id) for rule in contract.rules)
    return {column.name: frozenset((~column).arg_true().to_list()) for column in kept}


def refused(failing: Failing, contract: Contract) -> frozenset[int]:
    """The rows that broke a row rule that is more than a warning."""
    refusing = (rule.id for rule in contract.rules if rule.severity is not Severity.WARNING)
    return frozenset().union(*(failing[rule_id] for rule_id in refusing))


def test_no_kind_of_row_rule_is_left_out() -> None:
    assert {rule.kind for rule in EXAMPLE.rules} == set(Kind)
    for contract in (EXAMPLE, *all_contracts()):
        named = [expectation.meta["rule_id"] for expectation in expectations(contract).expectations]
        assert named == [rule.id for rule in contract.rules]


def test_every_edge_is_judged_as_the_masks_judge_it() -> None:
    failing = failing_rows(edge_frame(), EXAMPLE)
    of_rows = {rule.id for rule in EXAMPLE.rules}
    for number, (rule_id, values, kept) in enumerate(edges()):
        if rule_id in of_rows:
            assert (number not in failing[rule_id]) == kept, (rule_id, values)
    assert failing == failing_by_masks(edge_frame(), EXAMPLE)
    assert not any(failing_rows(conform([], EXAMPLE), EXAMPLE).values())


@given(frames(max_rows=40))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_masks_and_great_expectations_refuse_the_same_rows(frame: pl.DataFrame) -> None:
    failing = failing_rows(frame, EXAMPLE)
    assert failing == failing_by_masks(frame, EXAMPLE)
    assert refused(failing, EXAMPLE) == frozenset(audit(frame.with_row_index("came"), EXAMPLE).bad["came"].to_list())


def test_severity_and_words_are_in_the_suite() -> None:
    by_rule = {expectation.meta["rule_id"]: expectation for expectation in expectations(EXAMPLE).expectations}
    for rule in EXAMPLE.rules:
        assert (by_rule[rule.id].severity == "warning") == (rule.severity is Severity.WARNING)
    assert by_rule["floor_between"].notes == "floor is at least -1.5"


def _suite(*made: Any) -> Any:
    import great_expectations

    return great_expectations.ExpectationSuite(name="made by hand", expectations=list(made))


def test_a_metric_that_cannot_be_computed_is_an_error_and_not_bad_data() -> None:
    expectations(EXAMPLE)  # imports Great Expectations without its warnings
    from great_expectations import expectations as library

    suite = _suite(library.ExpectColumnValuesToNotBeNull(column="absent", meta={"rule_id": "absent_present"}))  # type: ignore[attr-defined]
    with pytest.raises(
        ContractError, match=r"^Great Expectations could not evaluate the rule absent_present: .+"
    ) as caught:
        run_suite(edge_frame(), suite)
    assert "\n" not in str(caught.value)


def test_an_expectation_that_crashes_is_an_error_and_not_bad_data() -> None:
    expectations(EXAMPLE)
    from great_expectations import expectations as library

    class ExpectTooMuch(library.ExpectColumnValuesToNotBeNull):  # type: ignore[misc, name-defined]
        """Expect what cannot be."""

        def _validate(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError("one line\nand another")

    with pytest.raises(ContractError, match=r"could not evaluate the rule too_much: .*one line and another"):
        run_suite(edge_frame(), _suite(ExpectTooMuch(column="text", meta={"rule_id": "too_much"})))


def test_nothing_is_printed_or_logged(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    level = logging.getLogger("great_expectations").level
    failing_rows(edge_frame(), EXAMPLE)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert logging.getLogger("great_expectations").level == level


def test_validations_in_several_threads_do_not_disturb_each_other() -> None:
    good, bad = conform([row(name="a")], EXAMPLE), conform([row(name="a", needed=None)], EXAMPLE)
    found: dict[int, frozenset[int]] = {}

    def work(number: int) -> None:
        found[number] = refused(failing_rows(bad if number % 2 else good, EXAMPLE), EXAMPLE)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: frozenset(), 1: {0}, 2: frozenset(), 3: {0}}


def test_great_expectations_is_imported_only_where_it_is_used() -> None:
    modules = "evalake.contracts.audit, " + ", ".join(
        f"evalake.contracts.engines.{name}" for name in ("sql", "great_expectations", "odcs")
    )
    script = f"import sys, {modules}; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
