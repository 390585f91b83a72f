"""The list of sessions: filtered, sorted and paged."""

from typing import Any

from tests.service.services import Service


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
