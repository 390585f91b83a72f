"""What the API says of a scoring that has failed: no analysis, and a reason in words."""

from typing import Any

import pytest

from evalake.server.scoring.events import _in_words
from evalake.server.scoring.views import Score, score
from evalake.suites.session_review.contract import SessionScore
from tests.integration.server.services import Service

ROW = {
    **dict.fromkeys(SessionScore.model_fields),
    **{"score_id": "a" * 64, "session_id": "s", "criteria_hash": "b" * 64, "judge": "j", "replicate": 0},
    **{"cut_chars": 0, "cut_interactions": 0, "status": "completed"},
}


@pytest.mark.parametrize("status", ["failed", "completed"])
def test_only_a_failed_scoring_has_no_analysis(status: str) -> None:
    row = {**ROW, "status": status, "score_analysis": "a first turn", "missing_tools_analysis": "a second"}
    shown = Score.model_validate(score(row, (), "", None, is_current=True))
    kept = (None, None) if status == "failed" else ("a first turn", "a second")
    assert (shown.score_analysis, shown.missing_tools_analysis) == kept


def test_a_tool_that_was_missed_is_told_apart_from_one_to_improve_and_unknown_from_none() -> None:
    unused = {"tool_name": "get-logs", "rationale": "the cause stood there", "kind": "unused"}
    improvable = {"tool_name": "get-logs", "rationale": "its output is cut", "kind": "improvable"}
    absent = {"tool_name": "memory-dump", "rationale": None, "kind": "absent"}
    row = {**ROW, "missing_tools": ["get-logs", "memory-dump", "of-a-lake-of-before"]}
    shown = Score.model_validate(score(row, (unused, improvable, absent), "", None, is_current=True))
    untold = {"tool_name": "of-a-lake-of-before", "rationale": None, "kind": None}
    assert [tool.model_dump() for tool in shown.missing_tools or ()] == [unused, absent, untold]
    assert [tool.model_dump() for tool in shown.tools_to_improve or ()] == [improvable]
    unknown = Score.model_validate(score(ROW, (), "", None, is_current=True))
    assert (unknown.missing_tools, unknown.tools_to_improve) == (None, None)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Flow run process exited with non-zero status code -9.",
            "its process was killed (SIGKILL, as where memory runs out); ask for it again",
        ),
        ("The container ended with status code 143.", "its process was killed (SIGTERM); ask for it again"),
        (
            "Flow run process exited with non-zero status code 128.",
            "Flow run process exited with non-zero status code 128.",
        ),
        ("Process for flow run 'x' exited with status code: -15", "its process was killed (SIGTERM); ask for it again"),
        (
            "Flow run process exited with non-zero status code 1.",
            "Flow run process exited with non-zero status code 1.",
        ),
        (None, "no reason given"),
    ],
)
def test_the_end_of_a_process_is_told_in_words(message: str | None, words: str) -> None:
    assert _in_words(message) == words


def test_lists_are_filtered_sorted_and_paged(listed: Service) -> None:
    def names(**parameters: Any) -> list[str]:
        answer = listed.http.get("/api/v1/sessions", params={"search": "NEEDLE", **parameters})
        assert answer.status_code == 200, answer.text
        return [entry["session_id"].removeprefix("lists-") for entry in answer.json()["sessions"]]

    assert names() == ["none", "failed", "green", "yellow", "red"]
    assert names(order="asc", page_size=2, page=2) == ["green", "failed"]
    assert names(sort="score") == ["green", "yellow", "red", "failed", "none"]
    assert names(sort="score", order="asc") == ["red", "yellow", "green", "failed", "none"]
    assert names(min_score=50, max_score=74) == ["yellow"]
    assert names(status=["failed", "not_scored"]) == ["none", "failed"]
    assert names(criteria="current") == ["failed", "green", "yellow", "red"]
    assert names(criteria="obsolete") == []
    assert names(from_us=1775124000000000, to_us=1775124000000000) == ["yellow"]
    assert names(agent=["lister", "another"], session_status="completed") == names()
    assert names(agent="another") == names(alert_type="DiskFull") == names(session_status="failed") == []
    assert names(sort="session", order="asc") == ["failed", "green", "none", "red", "yellow"]
    assert names(sort="tool_calls", min_tool_calls=1, max_tool_calls=1)[0] == "failed"
    assert names(min_tool_calls=2) == names(min_seconds=1) == []
    assert names(max_seconds=0, sort="duration") == names(sort="agent") == names(sort="alert_type")
    assert names(scored_by="api-client", sort="status")[0] == "failed"
    assert sorted(names(scored_by="api-client")) == ["failed", "green", "red", "yellow"]
    ended = listed.score("lists-red").json()["completed_at_us"]
    assert "red" in names(scored_from_us=ended, sort="scored_at")
    assert names(scored_to_us=ended - 60_000_000) == []
    assert names(search="lists-red") == ["red"]
    assert names(search="lists-%") == []
    page = listed.http.get("/api/v1/sessions", params={"search": "needle", "page_size": 2, "page": 3}).json()
    assert (page["total"], page["pages"], len(page["sessions"])) == (5, 3, 1)
    assert {"lister", "disk-agent"} <= set(page["choices"]["agents"])
    assert "DiskFull" in page["choices"]["alert_types"]
    assert page["choices"]["scored_by"] == ["api-client"]
    assert listed.http.get("/api/v1/sessions", params={"sort": "luck"}).status_code == 422
