"""What a trivial auditor gets follows from the truth alone, whoever was asked."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.score import score
from evalake.suites.solidity_audit.truth import GroundTruth, always
from tests.unit.suites.solidity_audit import support


def trivial(vulnerable: bool, safe_contracts: int = 1) -> pl.DataFrame:
    """The rows of one vulnerable contract and some safe ones, as an auditor that always says the same has them."""
    lines = [
        support.line(0, support.TRUTH, support.found()),
        *(support.line(1 + n, support.SAFE, support.judgement(said=True)) for n in range(safe_contracts)),
    ]
    return support.frame_of(lines).with_columns(**always(vulnerable=vulnerable))


def measured(rows: pl.DataFrame) -> list[float | None]:
    names = ("recall", "accuracy", "target_detection_rate", "finding_precision")
    values = support.values_of(rows, *names)
    return [values[name]["value"] for name in names]


def test_who_calls_everything_vulnerable_misses_nothing_and_clears_nobody() -> None:
    assert measured(trivial(vulnerable=True, safe_contracts=3)) == [1.0, 0.25, 0.0, None]


def test_who_calls_everything_safe_finds_nothing() -> None:
    assert measured(trivial(vulnerable=False)) == [0.0, 0.5, 0.0, None]


@pytest.mark.parametrize("vulnerable", [True, False])
@pytest.mark.parametrize("truth", [support.TRUTH, support.SAFE])
def test_the_columns_are_those_of_the_baseline_that_says_so(vulnerable: bool, truth: GroundTruth) -> None:
    audit = BASELINES["always-vulnerable" if vulnerable else "always-safe"]([])
    judged: dict[str, Any]
    judged = {"findings": []} | ({"target_assessment": support.target(found=False)} if truth.is_vulnerable else {})
    item, answered = support.conversation([judged], audit, prompt_type="direct", sample=support.sample(truth))
    row = support.landed(score(item, answered, {})[RESULTS.table])
    columns = always(vulnerable=vulnerable)
    assert row.with_columns(**columns).select(columns.keys()).equals(row.select(columns.keys()))
