"""Rows for machines: every kind of value in JSON, CSV and Parquet, and frames as parts of one table."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from evalake.storage.sql.query import plain


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (True, True),
        (b"\x00\xff", "00ff"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        ({"a": [datetime(2026, 1, 2, tzinfo=UTC)]}, {"a": ["2026-01-02T00:00:00+00:00"]}),
    ],
)
def test_a_value_is_one_that_json_has(value: object, told: object) -> None:
    assert plain(value) == told
