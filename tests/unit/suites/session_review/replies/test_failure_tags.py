"""Patterns of failure that a judge names, and the sentences in which it does; a denial is no finding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.session_review.replies import FAILURE_TAGS, read_failure_tags, read_failure_words


@pytest.mark.parametrize(
    ("analysis", "tags"),
    [
        ("This is a premature_conclusion.", ["premature_conclusion"]),
        ("A Premature Conclusion, and missed available tools.", ["premature_conclusion", "missed_available_tool"]),
        ("**wrong-conclusion**", ["wrong_conclusion"]),
        ("Wrong conclusion after incomplete evidence", ["incomplete_evidence", "wrong_conclusion"]),
        ("The agent did not verify it: a premature conclusion.", ["premature_conclusion"]),
        ("It never read the log, incomplete evidence.", ["incomplete_evidence"]),
        ("Not only a premature conclusion but a wrong conclusion.", ["premature_conclusion", "wrong_conclusion"]),
        ("There is no log. Unsupported confidence follows.", ["unsupported_confidence"]),
        ("No wrong conclusion, but incomplete evidence.", ["incomplete_evidence"]),
        ("No wrong conclusion here. Later: wrong conclusion at 7.", ["wrong_conclusion"]),
        ("A premature_conclusion. No wrong_conclusion.", ["premature_conclusion"]),
        ("A wrong conclusion! Never was the log read.", ["wrong_conclusion"]),
        ("Incomplete evidence; none of the logs was read.", ["incomplete_evidence"]),
        ("- repeated_failure\n- no hallucinated_evidence", ["repeated_failure"]),
        ("**Wrong conclusion**\nNot one log was read.", ["wrong_conclusion"]),
        ("no wrong conclusion", []),
        ("| **wrong_conclusion** | none |", []),
        ("**wrong_conclusion:**\n- none found", []),
        ("No wrong_conclusion or hallucinated_evidence.", []),
        ("There is no sign of a premature or wrong conclusion.", []),
        ("The agent didn't reach a wrong conclusion.", []),
        ("without any hallucinated evidence", []),
        ("wrong_conclusion: no", []),
        ("wrong_conclusion: none; repeated_failure: not found", []),
        ("A wrong conclusion was avoided.", []),
        ("Hallucinated evidence is not present.", []),
        ("Failure tags: none", []),
        ("", []),
        ("premature\nconclusion", []),
    ],
)
def test_a_denied_pattern_is_no_finding(analysis: str, tags: list[str]) -> None:
    assert read_failure_tags(analysis) == tags


def test_the_words_in_which_a_pattern_is_found_are_its_sentence() -> None:
    analysis = """## Logical flow
It began well. Then **premature conclusion**: the leak was named before any log. No wrong_conclusion.

- Deduction: 3 points, for calling it certain (unsupported_confidence).
| premature_conclusion | at 7 |
- Deduction: 3 points, for calling it certain (unsupported_confidence)."""
    assert read_failure_words(analysis) == {
        "premature_conclusion": [
            "Then premature conclusion: the leak was named before any log.",
            "premature_conclusion at 7",
        ],
        "unsupported_confidence": ["Deduction: 3 points, for calling it certain (unsupported_confidence)."],
    }


@given(st.lists(st.sampled_from([*FAILURE_TAGS, "no", "not", ",", ".", "but", "\n", "the"]), max_size=60))
def test_tags_come_in_the_order_of_the_vocabulary_each_once(words: list[str]) -> None:
    found = read_failure_tags(" ".join(words))
    assert found == [tag for tag in FAILURE_TAGS if tag in found]
    assert set(found) <= set(words)


def test_a_huge_analysis_is_read() -> None:
    assert read_failure_tags("no wrong conclusion, " * 20_000) == []
    assert read_failure_tags("x" * 2_000_000 + " wrong_conclusion") == ["wrong_conclusion"]
