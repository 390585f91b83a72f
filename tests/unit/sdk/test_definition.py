"""A suite as one object: what it must have, and what follows from what it has."""

from dataclasses import replace

import polars as pl
import pytest

from evalake.contracts.tables import SAMPLES
from evalake.core.errors import ContractError, SourceError
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Total
from evalake.sdk import JudgedRow, ReplyColumns, ResultRow, result_contract
from evalake.sdk.suite import usage_metrics
from evalake.suites.registry import suite, suite_names


def test_a_suite_whose_rows_could_not_be_found_again_is_none() -> None:
    found = suite("command_guard")
    with pytest.raises(ContractError, match=r"the table samples has no endpoint, landed_by_run, model, origin"):
        replace(found.scoring, results=SAMPLES)


def test_metrics_of_usage_come_by_themselves_but_for_those_that_a_suite_declares() -> None:
    found = suite("command_guard")
    mine = Metric("output_tokens", Total(pl.col("output_tokens") * 2))
    declared = replace(found, metrics=replace(found.metrics, own=lambda options: (mine,)))
    metrics = {metric.name: metric for metric in declared.all_metrics({})}
    assert {*metrics} == {"output_tokens", "input_tokens", "cost_usd_total"}
    assert metrics["output_tokens"] is mine


def test_a_judged_suite_is_known_by_its_rows() -> None:
    assert [suite(name).is_judged for name in ("command_guard", "solidity_audit", "session_review")] == [
        False, True, True
    ]  # fmt: skip
    for name in suite_names():
        found = suite(name)
        assert found.contracts == (found.results, *found.scoring.extra_tables)


def test_recorded_lines_are_read_as_the_suite_says_or_in_the_form_of_all_suites() -> None:
    line = {"dataset": "d", "sample_id": "s", "input": "ls", "model": "a/m", "replies": [{"text": "hello"}]}
    found = suite("command_guard")
    plain = replace(found, data=replace(found.data, read_recorded=None))
    assert plain.recorded(line).item.sample.input == "ls"
    with pytest.raises(SourceError, match="command"):
        found.recorded(line)


class Plain(ResultRow):
    """An answer without what it took."""


class Measured(ResultRow, ReplyColumns):
    """An answer with what it took."""


class Judged(JudgedRow, ReplyColumns):
    """An answer that a judge was paid for, too."""


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (Plain, set()),
        (Measured, {"cost_usd_total", "input_tokens", "output_tokens"}),
        (Judged, {"cost_usd_total", "input_tokens", "output_tokens"}),
    ],
)
def test_there_are_those_whose_columns_there_are(row: type[ResultRow], names: set[str]) -> None:
    assert {metric.name for metric in usage_metrics(result_contract("quiz_results", row), ())} == names


@pytest.mark.parametrize(("judge_costs", "total"), [((0.5, 0.25), 3.75), ((0.5, None), None)])
def test_a_judge_is_paid_for_too_and_an_unknown_price_makes_the_total_unknown(
    judge_costs: tuple[float | None, ...], total: float | None
) -> None:
    frame = pl.DataFrame(
        {"model": ["m"] * 2, "judge": ["j"] * 2, "cost_usd": [1.0, 2.0], "judge_cost_usd": judge_costs,
         "input_tokens": [1, 2], "output_tokens": [3, None]}
    )  # fmt: skip
    metrics = tuple(usage_metrics(result_contract("quiz_results", Judged), ()))
    values = dict(measure(frame, metrics).select("metric", "value").iter_rows())
    assert values == {"cost_usd_total": total, "input_tokens": 3.0, "output_tokens": None}
