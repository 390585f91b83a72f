"""Values of exports become what a session can hold: storable text, times, states; what cannot is refused by name."""

import json
from typing import Any

import pytest

from suites.session_review.session import dump, load
from suites.session_review.sources.material import RefusedError
from suites.session_review.sources.tarsy import read_detail
from tests.suites.session_review.support import called, detail, stage


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "timed_out", "TIMED-OUT", "canceled"])
def test_sessions_that_are_over_are_read(status: str) -> None:
    assert read_detail(detail(stage("a"), status=status)).status in ("completed", "failed", "cancelled", "timed_out")


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
