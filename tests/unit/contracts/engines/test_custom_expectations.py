"""The two kinds of expectation that are added to Great Expectations are known to it, and judge as the masks do."""

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.engines.great_expectations import validate
from tests.unit.contracts.examples import EXAMPLE, row

pytestmark = pytest.mark.slow


def both(rule_id: str, frame: pl.DataFrame) -> tuple[int, int]:
    """How many rows break the rule, by the masks and by Great Expectations."""
    (of_masks,) = (each for each in audit(frame, EXAMPLE).results if each.rule_id == rule_id)
    (of_expectations,) = (each for each in validate(frame, EXAMPLE).results if each.rule_id == rule_id)
    return of_masks.rows_failed, of_expectations.rows_failed


def test_a_list_with_anything_in_it_is_not_empty() -> None:
    values: tuple[list[str] | None, ...] = (None, [], [""], ["a", "b"])
    frame = conform([row(name=str(n), items=items) for n, items in enumerate(values)], EXAMPLE)
    assert both("items_empty", frame) == (2, 2)


def test_a_share_above_its_bound_counts_the_rows_of_its_group_alone() -> None:
    words = [("yes", "failed"), ("yes", "failed"), ("yes", "done"), ("no?", "failed"), ("no?", "done")]
    rows = [row(name=str(n), word=word, state=state, reason="r") for n, (word, state) in enumerate(words)]
    assert both("failed_share", conform(rows, EXAMPLE)) == (2, 2)
    assert both("failed_share", conform(rows[3:], EXAMPLE)) == (0, 0)
