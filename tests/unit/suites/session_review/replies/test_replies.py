"""What a judge's words say: totals, tags and missing tools."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.session_review import replies
from evalake.suites.session_review.replies import FAILURE_TAGS, read_failure_tags, read_failure_words
from tests.cases import cases_beside

CASES = cases_beside(__file__)

# Patterns of failure that a judge names, and the sentences in which it does; a denial is no finding.


@pytest.mark.parametrize(("analysis", "tags"), CASES["failure tags"])
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


# Missing tools are read from lists of many forms, each of the kind that its heading says.

TWO = [("heap-dump", "shows the leak"), ("disk-usage", "sizes")]


@pytest.mark.parametrize(("answer", "tools"), CASES["missing tools"])
def test_missing_tools_are_read_from_lists_of_many_forms(answer: str | None, tools: list[list[str]] | None) -> None:
    found = replies.read_missing_tools(answer)
    assert found == (None if tools is None else tuple(replies.MissingTool(*tool) for tool in tools))


@pytest.mark.parametrize("form", ["## {}", "**{}**", "### 2. {}:", "1. **{}**", "__{}__:"])
def test_the_headings_say_of_each_tool_what_was_found_wanting(form: str) -> None:
    lists = {"Should have been used": "Log search", "Do not exist": "heap-dump", "Could be improved": "log-search"}
    answer = "MISSING TOOLS\n\n" + "\n\n".join(
        f"{form.format(heading)}\n\n1. **{name}**: because\nof it" for heading, name in lists.items()
    )
    found = replies.read_missing_tools(answer)
    assert found == (
        replies.MissingTool("log-search", "because of it", replies.UNUSED),
        replies.MissingTool("heap-dump", "because of it", replies.ABSENT),
        replies.MissingTool("log-search", "because of it", replies.IMPROVABLE),
    )
    assert replies.missed(found) == ["log-search", "heap-dump"]
    assert replies.missed(found[2:]) == []


def test_a_list_that_is_empty_takes_nothing_from_the_others() -> None:
    answer = "## Should have been used\nNone.\n\n## Do not exist\n1. **a-tool**: x\n\n## Could be improved\nNone."
    assert replies.read_missing_tools(answer) == (replies.MissingTool("a-tool", "x", replies.ABSENT),)


@given(st.text(alphabet=st.sampled_from("1.-*`_:# \nabAB—") | st.characters(), max_size=200))
def test_any_answer_is_read(answer: str) -> None:
    found = replies.read_missing_tools(answer) or ()
    assert len({(tool.name, tool.kind) for tool in found}) == len(found)
    assert all(tool.name == replies.tool_name(tool.name) != "" for tool in found)


def test_a_huge_answer_is_read_and_bounded() -> None:
    many = replies.read_missing_tools("\n".join(f"{n}. **tool-{n}**: x" for n in range(50_000)))
    assert many is not None
    assert len(many) == 50
    assert replies.read_missing_tools("-" * 1_000_000) is None
    assert replies.read_missing_tools("* " * 500_000) is None


# A judge's first answer: the last line decides, the longest analysis is kept, categories are read where present.

LAST_LINES: list[tuple[str | None, int | None]] = [
    *chain.from_iterable(CASES["last lines"].values()),
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


@pytest.mark.parametrize(("text", "points"), [*CASES["categories"], ("15/25\n" * 100_000, [None] * 4)])
def test_category_scores_are_read_where_present(text: str, points: list[int | None]) -> None:
    assert list(replies.read_categories(text).values()) == points


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
