"""What came of an item, as the rows of each suite tell it: missing, a reply without a verdict, or neither."""

from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.models.request import Failure, Reply
from evalake.sdk import Outcomes
from evalake.sdk.suite import EMPTY
from evalake.suites.command_guard.contract import OUTCOMES as GUARD
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.session_review.contract import OUTCOMES as REVIEWED
from evalake.suites.solidity_audit.contract import OUTCOMES as AUDITED
from tests.unit.suites.command_guard.rows import LANDING, row
from tests.unit.suites.session_review.scored import REVIEW, scored
from tests.unit.suites.solidity_audit.judgements import GOOD
from tests.unit.suites.solidity_audit.support import line, rows_of


def outcome(outcomes: Outcomes, rows: pl.DataFrame) -> list[tuple[str | None, str | None]]:
    """Why each row is missing, and why it holds no verdict."""
    words = {"missing": outcomes.missing, "without_verdict": outcomes.without_verdict}
    told = {name: pl.lit(None, pl.String) if word is None else word for name, word in words.items()}
    return list(rows.select(**told).iter_rows())


@pytest.mark.parametrize(
    ("replied", "told"),
    [
        (Reply('{"action": "ALLOW"}'), (None, None)),
        (Reply("I am just a parrot."), (None, "format_error")),
        (Reply(""), (None, EMPTY)),
        (Reply(None), (None, EMPTY)),
        (Reply(None, finish_reason="length"), (None, "token_limit")),
        (Failure("timeout", "too late", 3), ("timeout", EMPTY)),
        (Failure("content_policy", "refused", 1), (None, "content_filter")),
        (Failure("context_length", "too long", 1), (None, "token_limit")),
    ],
)
def test_a_guard(replied: Reply | Failure, told: tuple[str | None, str | None]) -> None:
    rows = conform([{**row(replied), **LANDING}], RESULTS)
    assert outcome(GUARD, rows) == [told]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({}, (None, None)),
        ({"said_vulnerable": None}, (None, "no_verdict")),
        ({"subject_error": "timeout"}, (None, EMPTY)),  # a reply without a text
        ({"subject_error": "timeout", "judgement_hash": None}, ("timeout", EMPTY)),
        ({"subject_error": "content_policy", "judgement_hash": None}, (None, "content_policy")),
        ({"judge_error": "timeout", "judgement_hash": None}, ("timeout", None)),
        ({"judge_error": "Failed to parse the reply of the judge"}, ("judge_error", None)),
    ],
)
def test_an_audit(columns: dict[str, Any], told: tuple[str | None, str | None]) -> None:
    results, _ = rows_of([line(judged=GOOD)])
    changed = results.with_columns(pl.lit(value, results.schema[name]).alias(name) for name, value in columns.items())
    assert outcome(AUDITED, changed) == [told]


def test_a_session_without_a_score_has_no_judgement() -> None:
    good, _ = scored(REVIEW, "None.")
    failed = {**good, "status": "failed", "error_kind": "no_total"}
    rows = pl.DataFrame([{name: each[name] for name in ("status", "error_kind")} for each in (good, failed)])
    assert outcome(REVIEWED, rows) == [(None, None), ("no_total", None)]
