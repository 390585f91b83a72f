"""A judge's first answer: the last line decides, the longest analysis is kept, categories are read where present."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.session_review import replies

LAST_LINES: list[tuple[str | None, int | None]] = [
    # the forms that are allowed
    ("67", 67),
    ("0", 0),
    ("100", 100),
    ("Total: 67", 67),
    ("Total score: 67", 67),
    ("67/100", 67),
    ("total: 67", 67),
    ("TOTAL SCORE: 67", 67),
    ("Total: 67/100", 67),
    ("Score: 67", 67),
    ("Final score: 67", 67),
    ("## **Final Score**: 67/100", 67),
    ("# Total: 67", 67),
    ("Logical flow score: 67", None),
    ("Score: 150", None),
    ("67 / 100", 67),
    # white space and emphasis around them
    ("  67\t", 67),
    ("\u00a067\u3000", 67),
    ("**67**", 67),
    ("_67_", 67),
    ("*** 67 ***", 67),
    ("**Total: 67**", 67),
    ("**Total:** 67", 67),
    ("__Total score__: **67**", 67),
    # anything else is refused
    ("14/25", None),
    ("-5", None),
    ("+5", None),
    ("150", None),
    ("101", None),
    ("150/100", None),
    ("1000", None),
    ("67.5", None),
    ("67.", 67),
    ("67%", None),
    ("067", None),
    ("6 7", None),
    ("1e1", None),
    ("0x43", None),
    ("67 points", 67),
    ("The total is 67", None),
    ("Total 67", None),
    ("Total: sixty-seven", None),
    ("Total: 67 (see above)", 67),
    ("Total: 67 - adequate, with gaps", 67),
    ("67/100 — good", 67),
    ("67 (adequate)", 67),
    ("67 out of 100.", 67),
    ("67 (out of 100)", 67),
    ("67/100 points", 67),
    ("Total: 67 points, with gaps", 67),
    ('"67".', 67),
    ("67.5/100 points", None),
    ("Total: 67 or 70", None),
    ("Total: 67 (up from 60)", None),
    ("67 - adequate", 67),
    ("**67** — solid work", 67),
    ("67—solid", 67),
    ("67. Solid work.", 67),
    ("67 - up from 60", None),
    ("67 errors were seen", None),
    ("7. More logs", None),
    ("7) More logs", None),
    ("67/100 or 70/100", None),
    ("50-60", None),
    # nothing there
    ("", None),
    (None, None),
    (" \n\t\n", None),
    # digits that are not Latin
    ("６７", None),
    ("٦٧", None),
    ("६७", None),
    ("²", None),
    ("Ⅵ", None),
    # code fences
    ("```\n67\n```", 67),
    ("```text\nTotal: 67\n```", 67),
    ("`67`", 67),
    ("```\nanalysis\n```\n67", 67),
    # huge
    ("9" * 100_000, None),
    ("x" * 1_000_000, None),
    ("x\n" * 500_000 + "67", 67),
    ("*" * 1_000_000, None),
    ("67" + "\n" * 1_000_000, 67),
]


@pytest.mark.parametrize(("line", "total"), LAST_LINES, ids=lambda value: repr(value)[:30])
def test_the_table_of_last_lines(line: str | None, total: int | None) -> None:
    assert replies.read_total(line) == total
    if line is not None and line.strip():
        assert replies.read_total(f"Analysis, 14/25.\n\n{line}\n \n") == total
        assert replies.read_total(f"Analysis.\r\n{line}\r\n") == total


@pytest.mark.parametrize(
    ("end", "total"),
    [
        *(("The total is 67", 67), ("067", 67), ("Total Score = 67", 67), ("67/100", 67), ("Total: 67", 67)),
        *(("x 150", None), ("Synthesis quality: 15/25", None), ("-5", None), ("1.5", None), ("none", None)),
    ],
)
def test_the_documents_regular_expression_is_a_mode(end: str, total: int | None) -> None:
    assert replies.read_total(f"Analysis 3.\n{end}\n", replies.LAST_NUMBER) == total
    if "/100" not in end and not end.startswith("Total:"):
        assert replies.read_total(f"Analysis 3.\n{end}\n") is None


def test_a_remark_without_a_number_may_follow_the_total() -> None:
    assert replies.read_total("67\nThat is my total.") == 67
    assert replies.read_total("Total: 67\n\nIt names its gaps.\nNothing more.") == 67
    assert replies.read_total("67\nIt was 60 before.") is None
    assert replies.read_total("67\n" + "No number.\n" * 4) is None
    assert replies.read_total("1 - logs\n2 - metrics\n3 - traces") is None
    assert replies.read_total("66. logs\n67. metrics") is None
    assert replies.read_first_turn(["Analysis.\n\n```\n67\n```\n"]).analysis == "Analysis."


@given(st.integers(-1000, 1000), st.sampled_from(["{}", "Total: {}", "Total score: {}", "{}/100", "**{}**"]))
def test_exactly_the_integers_from_0_to_100_are_totals(number: int, form: str) -> None:
    assert replies.read_total(form.format(number)) == (number if 0 <= number <= 100 else None)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    total = replies.read_total(text)
    assert total is None or 0 <= total <= 100
    assert set(replies.read_categories(text)) == set(replies.CATEGORIES)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("Logical flow: 15/25\nConsistency: 14/25\nTool relevance: 13/25\nSynthesis quality: 12/25", (15, 14, 13, 12)),
        ("## 1. Logical Flow (15/25)\n### 2) CONSISTENCY — 14 / 25", (15, 14, None, None)),
        ("- **Logical Flow**: **15**/25\n* `Tool relevance`: 13/25", (15, None, 13, None)),
        ("| Logical flow | 15/25 |\n| Consistency | 0/25 |", (15, 0, None, None)),
        ("### Logical flow\nA text.\n**Score: 15/25**\n### Consistency\nNothing.", (15, None, None, None)),
        ("Logical flow: 10/25\nLater I reconsidered.\nLogical flow: 15/25", (15, None, None, None)),
        ("logical_flow: 15/25\ntool-relevance: 13/25", (15, None, 13, None)),
        ("The consistency is poor: 3/25", (None, None, None, None)),
        ("Logical flow: 26/25\nConsistency: 14.5/25\nTool relevance: 3/250", (None, None, None, None)),
        ("Logical flow: X/25\nConsistency: -4/25", (None, None, None, None)),
        ("", (None, None, None, None)),
        ("15/25\n" * 100_000, (None, None, None, None)),
    ],
)
def test_category_scores_are_read_where_present(text: str, points: tuple[int | None, ...]) -> None:
    assert tuple(replies.read_categories(text).values()) == points


def test_the_longest_analysis_is_kept_whichever_answer_gave_the_total() -> None:
    long = "A long analysis.\nLogical flow: 10/25\n" + "word " * 50
    first = replies.read_first_turn([long, "67"])
    assert (first.total, first.analysis) == (67, long.strip())
    second = replies.read_first_turn(["short", f"{long}\n67"])
    assert (second.total, second.analysis) == (67, long.strip())
    assert replies.read_first_turn(["67"]).analysis is None


def test_the_breakdown_is_that_of_the_answer_with_the_total_if_it_is_whole() -> None:
    def breakdown(*points: int) -> str:
        names = ("Logical flow", "Consistency", "Tool relevance", "Synthesis quality")
        return "\n".join(f"{name}: {given}/25" for name, given in zip(names, points, strict=False))

    long = f"{breakdown(1, 2, 3, 4)}\n{'word ' * 90}"
    again = replies.read_first_turn([long, f"{breakdown(10, 20, 15, 15)}\n60"])
    assert list(again.categories.values()) == [10, 20, 15, 15]
    assert again.breakdown_consistent is True
    partly = replies.read_first_turn([long, f"{breakdown(10, 20)}\n60"])
    assert list(partly.categories.values()) == [1, 2, 3, 4]
    assert partly.breakdown_consistent is False
    assert replies.read_first_turn([f"{breakdown(10, 20)}\n60"]).breakdown_consistent is None
    assert replies.read_first_turn([long]).breakdown_consistent is None
