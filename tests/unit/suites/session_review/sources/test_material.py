"""Values of exports become what a session can hold: storable text, times, states; what cannot is refused by name."""

import json
from typing import Any

import pytest

from evalake.suites.session_review.session import dump, load
from evalake.suites.session_review.sources.generic import (
    RefusedError,
    microseconds,
    result_text,
)
from evalake.suites.session_review.sources.tarsy import read_detail
from tests.unit.suites.session_review.support import called, detail, stage


@pytest.mark.parametrize("stated", ["completed", "failed", "cancelled", "timed_out", "TIMED-OUT", "canceled"])
def test_sessions_that_are_over_are_read(stated: str) -> None:
    assert read_detail(detail(stage("a"), status=stated)).status in ("completed", "failed", "cancelled", "timed_out")


@pytest.mark.parametrize(
    ("changes", "reason", "by_design"),
    [
        ({"status": "in_progress"}, "session is not over", True),
        ({"status": "paused"}, "session is not over", True),
        ({"status": None}, "session without status", False),
        ({"session_id": " "}, "session without session_id", False),
        ({"stages": "none"}, "not a session", False),
    ],
)
def test_what_is_no_session_that_is_over_is_refused(changes: dict[str, Any], reason: str, by_design: bool) -> None:
    with pytest.raises(RefusedError, match=reason) as refused:
        read_detail({**detail(stage("a")), **changes})
    assert refused.value.by_design is by_design


def test_text_that_no_table_can_hold_is_mended() -> None:
    body = json.loads(r'{"a": "x\u0000y\ud800z"}')
    session = read_detail(detail(stage("a", [called(1, "search", body, {"result": body["a"]})])))
    (call,) = session.tool_calls
    assert call.result == "x\ufffdy?z"
    assert load(dump(session)) == session


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"result": "found"}, "found"),
        ({"content": "found", "is_error": True}, "found"),
        ({"result": "found", "more": 1}, '{"result": "found", "more": 1}'),
        ({"result": [1]}, '{"result": [1]}'),
        ("found", "found"),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_a_result_is_what_the_agent_read(value: Any, read: str | None) -> None:
    assert result_text(value) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (5, 5),
        (5.9, 5),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:01+01:00", 1_000_000),
        ("1970-01-01T00:00:01", 1_000_000),
        (-1, None),
        (2**62, None),
        (float("nan"), None),
        (True, None),
        ("yesterday", None),
        ("0001-01-01", None),
        (None, None),
    ],
)
def test_a_time_is_in_microseconds_of_utc(value: Any, read: int | None) -> None:
    assert microseconds(value) == read
