"""The results of rules: none fails on more rows than were looked at."""

from evalake.contracts.tables.quality import CONTRACT_CHECKS
from tests.unit.contracts.tables.rows import broken_by


def test_no_more_rows_fail_than_were_checked() -> None:
    assert broken_by(CONTRACT_CHECKS, rows_checked=3, rows_failed=3) == []
    assert broken_by(CONTRACT_CHECKS, rows_checked=3, rows_failed=4) == ["failed_in_checked"]


def test_only_the_engines_that_there_are_check() -> None:
    for engine in ("polars", "great_expectations", "delta"):
        assert broken_by(CONTRACT_CHECKS, engine=engine) == []
    assert broken_by(CONTRACT_CHECKS, engine="spark") == ["engine_known"]
