"""The tables refuse a scoring that contradicts itself, and a scoring goes on to its end and never back."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk import Exchange
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import RESULTS
from evalake.suites.session_review.score import begun
from tests.unit.suites.session_review.scored import LANDED, REVIEW, broken, scored
from tests.unit.suites.session_review.support import item


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"total_score": 101}, "total_score_in_range"),
        ({"total_score": None}, "completed_has_total"),
        ({"logical_flow": 26}, "logical_flow_in_range"),
        ({"status": "failed"}, "total_only_when_completed"),
        ({"status": "failed", "total_score": None}, "failed_says_why"),
        ({"status": "pending", "total_score": None, "error_message": "x"}, "no_error_before_its_end"),
        ({"attempts": 4}, "attempts_in_range"),
        ({"judge": " "}, "judge_not_blank"),
    ],
)
def test_the_contract_refuses_rows_that_contradict_themselves(changes: dict[str, Any], rule: str) -> None:
    row, tools = scored(REVIEW, "None.")
    (rules,) = broken({**row, **changes}, tools)
    assert rule in rules


EARLY, LATE = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "rules"),
    [
        ({}, []),
        ({"asked_at": EARLY}, []),
        ({"asked_at": EARLY, "started_at": EARLY, "completed_at": LATE}, []),
        ({"asked_at": LATE, "started_at": EARLY}, [["starts_after_asked"]]),
        ({"started_at": LATE, "completed_at": EARLY}, [["ends_after_start"]]),
    ],
)
def test_a_scoring_is_asked_for_begun_and_ended_in_this_order(times: dict[str, Any], rules: list[list[str]]) -> None:
    row, tools = scored(REVIEW, "None.")
    assert [list(each) for each in broken({**row, **times}, tools)] == rules


@pytest.mark.parametrize(
    ("changes", "rule"), [({"position": -1}, "position_not_negative"), ({"tool_name": " "}, "tool_name_not_blank")]
)
def test_a_missing_tool_has_a_place_and_a_name(changes: dict[str, Any], rule: str) -> None:
    row, (tool,) = scored(REVIEW, "1. **heap-dump**: shows the leak")
    (rules,) = broken(row, [{**tool, **changes}])
    assert list(rules) == [rule]


def in_state(state: str) -> dict[str, Any]:
    """A scoring in a state, by the name that `STEPS` has for it."""
    row, _ = scored(REVIEW, "None.")
    if state in ("pending", "in_progress"):
        row_of = begun(item(), Exchange(row["prompt_hash"], Reply(None)))
        return {**row_of, "score_id": row["score_id"], "status": state}
    if state == "without tools":
        return {**row, "missing_tools": None, "missing_tools_analysis": None}
    if state in ("timeout", "no_total"):
        return {**row, "status": "failed", "total_score": None, "error_kind": state, "error_message": "no"}
    return row if state == "completed" else {**row, "total_score": 11}


STEPS = [
    ("pending", "in_progress", True),
    ("pending", "completed", True),
    ("in_progress", "completed", True),
    ("in_progress", "no_total", True),
    ("in_progress", "pending", False),
    ("timeout", "completed", True),
    ("no_total", "completed", False),
    ("completed", "timeout", False),
    ("completed", "in_progress", False),
    ("completed", "completed otherwise", False),
    ("without tools", "completed", True),
]


def test_a_scoring_goes_on_to_its_end_and_never_back(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))

    def rows(states: Iterable[str]) -> list[dict[str, Any]]:
        return [{**in_state(state), **LANDED, "score_id": content_hash(n)} for n, state in enumerate(states)]

    befores, afters = (rows(states) for states in ([old for old, _, _ in STEPS], [new for _, new, _ in STEPS]))
    for each in (befores, afters):
        frame = conform(each, RESULTS)
        assert audit(frame, RESULTS).bad.is_empty()
        land(lake, RESULTS, frame)
    told = ("status", "total_score", "error_kind", "missing_tools_analysis")
    kept = {row["score_id"]: [row[name] for name in told] for row in lake.frame(RESULTS).collect().to_dicts()}
    for step, before, after in zip(STEPS, befores, afters, strict=True):
        expected = after if step[2] else before
        assert kept[expected["score_id"]] == [expected[name] for name in told], step
