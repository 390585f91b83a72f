"""Reviews of a recorded round: what they answer in known words, and which finding each claim is about."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from suites.solidity_audit.rounds.review import LONGEST_NOTE, Claim, match, read_review
from tests.suites.solidity_audit.rounds.material import CLAIMS, review

NO_ANSWERS = dict.fromkeys(
    ("target_found", "target_class", "type_correct", "location_correct", "reasoning_quality", "overall_quality")
)


def test_a_review_is_read_whole() -> None:
    claim = {"model_claim": [f"[{CLAIMS[2]}", "or so]"], "classification": "security theater", "reasoning": "no way"}
    read = read_review(review(claim, reasoning_quality="Accurate") | {"summary": {"overall_quality": "high"}})
    assert (read.annotator, read.reviewed_at, read.note) == ("ann", datetime(2025, 12, 18, tzinfo=UTC), "ok")
    assert read.answers == NO_ANSWERS | {
        "target_found": True,
        "target_class": "found",
        "type_correct": True,
        "reasoning_quality": "accurate",
        "overall_quality": "high",
    }
    assert read.claims == (Claim(f"{CLAIMS[2]} or so", "SECURITY_THEATER", "security theater", "no way"),)
    assert read.unanswered == []


@pytest.mark.parametrize(
    ("target", "question", "answer"),
    [
        ({"found": "Yes"}, "target_found", True),
        ({"found": False}, "target_found", False),
        ({"found": None, "classification": "PARTIAL"}, "target_found", True),
        ({"found": None, "classification": "missed"}, "target_found", False),
        ({"type_correct": "no"}, "type_correct", False),
        ({"location_correct": " true "}, "location_correct", True),
        ({"reasoning_quality": "[partial]"}, "reasoning_quality", "partial"),
    ],
)
def test_answers_are_read_in_any_spelling(target: dict[str, Any], question: str, answer: Any) -> None:
    assert read_review(review(**target)).answers[question] == answer


@pytest.mark.parametrize(
    ("target", "question"),
    [
        ({"reasoning_quality": "accurate|partial|incorrect"}, "reasoning_quality"),
        ({"classification": "FOUND|PARTIAL"}, "target_class"),
        ({"found": "true/false"}, "target_found"),
        ({"location_correct": "mostly"}, "location_correct"),
    ],
)
def test_a_form_that_was_not_filled_in_answers_nothing_and_is_named(target: dict[str, Any], question: str) -> None:
    read = read_review(review(**target))
    assert read.answers[question] is None
    assert read.unanswered == [question]


def test_a_claim_of_two_classes_has_none() -> None:
    (claim,) = read_review(review({"claim": CLAIMS[1], "classification": "BONUS_VALID|HALLUCINATED"})).claims
    assert (claim.classification, claim.stated) == (None, "BONUS_VALID|HALLUCINATED")


@pytest.mark.parametrize("value", [{}, {"target_assessment": [], "other_findings": "none", "summary": 3}])
def test_a_review_that_says_nothing_answers_nothing(value: dict[str, Any]) -> None:
    read = read_review(value)
    assert (read.annotator, read.reviewed_at, read.note, read.claims) == (None, None, None, ())
    assert read.answers == NO_ANSWERS


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2025-12-18", datetime(2025, 12, 18, tzinfo=UTC)),
        ("2025-12-18T10:00:00+02:00", datetime(2025, 12, 18, 10, tzinfo=timezone(timedelta(hours=2)))),
        ("yesterday", None),
        (20251218, None),
    ],
)
def test_the_day_of_a_review_is_of_utc_where_it_names_no_zone(date: Any, day: datetime | None) -> None:
    assert read_review({"evaluation_info": {"date": date}}).reviewed_at == day


def test_texts_are_kept_as_tables_can_hold_them() -> None:
    read = read_review(review(notes="a\x00b" + "c" * LONGEST_NOTE))
    assert read.note is not None
    assert read.note.startswith("a?b")
    assert len(read.note) == LONGEST_NOTE


def claim(text: str) -> Claim:
    return Claim(text, None, "", None)


FINDINGS = {1: CLAIMS[1], 2: CLAIMS[2]}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (CLAIMS[1], 1),
        (CLAIMS[2].upper().replace(" ", "  "), 2),
        (CLAIMS[1].replace("twice", "two times"), 1),
        (CLAIMS[2][:50], 2),
        ("sends ether", None),
        ("Something else altogether, which the audit never said.", None),
        ("", None),
    ],
)
def test_a_claim_is_about_the_finding_that_it_repeats(text: str, finding: int | None) -> None:
    assert match([claim(text)], FINDINGS) == [(claim(text), finding)]


def test_a_finding_is_given_to_the_claim_that_is_most_like_it() -> None:
    near, same = claim(CLAIMS[1].replace("twice", "two times")), claim(CLAIMS[1])
    assert match([near, same], FINDINGS) == [(near, None), (same, 1)]
    assert match([same], {}) == [(same, None)]
