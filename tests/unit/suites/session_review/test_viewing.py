"""A session as lists show it: what was alerted and how the agent began, in words."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from evalake.server.viewer.texts import PREVIEW, beginnings
from evalake.storage.lake import Lake
from evalake.suites.session_review.session import dump
from evalake.suites.session_review.sources.generic import read_generic
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.suite import SUITE
from evalake.tasks.extract import extract

SAID = [{"role": "assistant", "content": "I look\n at the pods. " + "x" * 500}]


def brief(**fields: Any) -> str:
    session = read_generic({"session_id": "s", "status": "completed", "alert": "a", "messages": SAID, **fields})
    tell = SUITE.presentation.viewing.input_brief
    assert tell is not None
    return tell(dump(session))


@pytest.mark.parametrize(
    ("alert", "words"),
    [
        ("disk of\nworker-12 is full", "disk of worker-12 is full"),
        ({"severity": "high", "title": "disk is full"}, "disk is full"),
        ({"host": "worker-12", "problem": "disk full", "count": 3}, "worker-12, disk full"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_alert_and_first_words_are_told(alert: Any, words: str) -> None:
    told = brief(alert=alert if isinstance(alert, str) else json.dumps(alert), alert_type="DiskFull")
    assert told == f"DiskFull · {words} · I look at the pods. …"


def test_what_is_no_session_is_told_as_it_is() -> None:
    tell = SUITE.presentation.viewing.input_brief
    assert tell is not None
    assert tell("no JSON") == "no JSON"


def test_lists_of_the_viewer_hold_no_json(tmp_path: Any) -> None:
    lake = Lake(str(tmp_path / "lake"))
    dataset = read_dataset("starter")
    extract(lake, "r", [dataset])
    index: Any = SimpleNamespace(suite=SUITE)
    found = beginnings(lake, index, [sample.sample_hash for sample in dataset.samples])
    assert found.keys() == {sample.sample_hash for sample in dataset.samples}
    assert all("{" not in text and len(text) <= PREVIEW for text in found.values())
    assert any(text.startswith("HighErrorRate · checkout: error rate above 5 % · I start") for text in found.values())


def test_the_judges_words_stand_at_the_turn_the_quotation_or_the_tool_that_they_speak_of() -> None:
    tools = "# TOOLS AVAILABLE\n- logs.search: x\n- db.sessions: y\n"
    turns = "## 1 AGENT SAYS\nIt is the pool.\n## 2 TOOL CALL logs.search\n"
    text = f"{tools}{turns}# FINAL ANALYSIS\nPool."
    analysis = """General words, placed nowhere.
- 4 points: turn 1 guesses.
- "It is the pool" has no evidence.
- logs.search was called too late.
- 3 points: the conclusion is thin.
- nothing to place here"""
    missing = [{"tool_name": "db.sessions", "rationale": "shows sessions"}]
    place = SUITE.presentation.viewing.remarks
    assert place is not None

    placed = place(text, {"score_analysis": analysis}, missing)
    assert [line for line, _ in placed] == [4, 5, 6, 7, 3]
    assert placed[-1][1] == "db.sessions was missed: shows sessions"
    assert place(text, {"score_analysis": None}, []) == []
