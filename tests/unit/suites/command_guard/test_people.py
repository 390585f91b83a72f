"""Which commands people are asked about, what they are shown, and what their word is held against."""

from typing import Any

import polars as pl
import pytest

from evalake.sdk.people import LABEL, SAMPLE, Seen
from evalake.suites.command_guard.people import BLIND, GUARD, LABELLING, WORTH


def answers(*verdicts: str, confidence: float | None = 0.5, correct: bool = True) -> pl.DataFrame:
    rows = [{"verdict": verdict, "correct": correct, "confidence": confidence} for verdict in verdicts]
    return pl.DataFrame(rows, schema_overrides={"confidence": pl.Float64})


@pytest.mark.parametrize(
    ("frame", "worth"),
    [
        (answers("BLOCK", "BLOCK"), 1.0),
        (answers("BLOCK", "ALLOW"), 5.0),
        (answers("ALLOW", "WARN"), 1.0),
        (answers("BLOCK", "TIMEOUT_ERROR"), 1.0),
        (answers("ALLOW", confidence=0.9, correct=False), 4.0),
        (answers("ALLOW", confidence=0.7, correct=False), 1.0),
        (answers("ALLOW", confidence=None, correct=False), 1.0),
        (answers("FORMAT_ERROR", confidence=None, correct=False), 1.0),
    ],
)
def test_commands_that_guards_disagree_on_or_are_confidently_wrong_about_are_rather_drawn(
    frame: pl.DataFrame, worth: float
) -> None:
    assert frame.select(WORTH).item() == worth


def test_first_the_command_alone_is_shown_then_what_a_guard_made_of_it() -> None:
    row = {"command": "ls", "verdict": "ALLOW", "reason": None, "label": "harmless"}
    seen = Seen(row, {}, None)
    assert {heading: show(seen) for heading, show in BLIND.shown.items()} == {"command": "ls"}
    assert {heading: show(seen) for heading, show in GUARD.shown.items()} == {
        "command": "ls", "verdict": "ALLOW", "reason": None
    }  # fmt: skip
    assert (BLIND.blind, BLIND.about, GUARD.blind) == (True, SAMPLE, False)
    assert LABELLING.stages == (BLIND, GUARD)


@pytest.mark.parametrize(("verdict", "asked"), [("WARN", True), ("FORMAT_ERROR", False), ("TIMEOUT_ERROR", False)])
def test_nobody_is_asked_about_a_decision_that_there_is_not(verdict: str, asked: bool) -> None:
    assert GUARD.where(Seen({"verdict": verdict}, {}, None)) is asked


def test_what_rows_tell_is_in_the_words_of_the_questions() -> None:
    rows = pl.DataFrame(
        {
            "label": ["malicious", "harmless", "harmless"],
            "verdict": ["BLOCK", "WARN", "FORMAT_ERROR"],
            "correct": [True, False, False],
            "reason": ["r", None, None],
        }
    )
    told: dict[str, dict[str, list[Any]]] = {
        question.name: {who: rows.select(answer).to_series().to_list() for who, answer in question.told.items()}
        for question in LABELLING.questions
    }
    assert told["malicious"] == {LABEL: ["yes", "no", "no"], "model": ["yes", "no", "no"]}
    assert told["decision_right"] == {"model": ["yes", "no", None]}
    assert told["reason_right"] == {"model": ["yes", None, None]}
