"""Metrics of usage follow from the columns of the results, and an unknown makes a total unknown."""

import polars as pl
import pytest

from metrics.compute import measure
from suites.base import JudgedRow, ReplyColumns, ResultRow, result_contract
from suites.base.definition import usage_metrics


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


def test_what_a_suite_declares_is_not_declared_again() -> None:
    contract = result_contract("quiz_results", Measured)
    assert [metric.name for metric in usage_metrics(contract, ("cost_usd_total", "input_tokens"))] == ["output_tokens"]


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
