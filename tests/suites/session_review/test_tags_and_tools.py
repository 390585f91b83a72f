"""What else is read from a judge's words: patterns of failure, and missing tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.session_review.replies.failure_tags import FAILURE_TAGS, read_failure_tags, read_failure_words
from suites.session_review.replies.missing_tools import (
    ABSENT,
    IMPROVABLE,
    UNUSED,
    MissingTool,
    missed,
    read_missing_tools,
    tool_name,
)


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
        ("no wrong conclusion", []),
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


TWO = [("heap-dump", "shows the leak"), ("disk-usage", "sizes")]


@pytest.mark.parametrize(
    ("answer", "tools"),
    [
        ("1. **heap-dump**: shows the leak", [("heap-dump", "shows the leak")]),
        ("1. **Heap Dump** — shows\n   the leak\n2. `disk_usage`: sizes", TWO),
        ("- Heap dump: shows the leak\n* disk-usage - sizes", TWO),
        ("1. **Tool name**: heap-dump\n   **Rationale**: shows\n   - more", [("heap-dump", "shows more")]),
        ("### 1. heap-dump\nRationale: shows the leak\n\n### 2. disk-usage\nsizes", TWO),
        ("I miss one:\n\n1) **heap-dump**: yes", [("heap-dump", "yes")]),
        ("1. **heap-dump**: a\n2. **Heap_Dump**: b", [("heap-dump", "a b")]),
        ("No critical tools were missing.", []),
        ("No critical missing tools identified.", []),
        ("None.", []),
        ("1. None.\n", []),
        ("## Do not exist\n\nNone.\n\n## Could be improved\n- n/a\n", []),
        ("A better search would have been good.", None),
        ("None of the tools showed the heap.", None),
        ("", None),
        (None, None),
    ],
)
def test_missing_tools_are_read_from_lists_of_many_forms(
    answer: str | None, tools: list[tuple[str, str]] | None
) -> None:
    found = read_missing_tools(answer)
    assert found == (None if tools is None else tuple(MissingTool(*tool) for tool in tools))


@pytest.mark.parametrize("form", ["## {}", "**{}**", "### 2. {}:", "1. **{}**", "__{}__:"])
def test_the_headings_say_of_each_tool_what_was_found_wanting(form: str) -> None:
    lists = {"Should have been used": "Log search", "Do not exist": "heap-dump", "Could be improved": "log-search"}
    answer = "MISSING TOOLS\n\n" + "\n\n".join(
        f"{form.format(heading)}\n\n1. **{name}**: because\nof it" for heading, name in lists.items()
    )
    found = read_missing_tools(answer)
    assert found == (
        MissingTool("log-search", "because of it", UNUSED),
        MissingTool("heap-dump", "because of it", ABSENT),
        MissingTool("log-search", "because of it", IMPROVABLE),
    )
    assert missed(found) == ["log-search", "heap-dump"]
    assert missed(found[2:]) == []


def test_a_list_that_is_empty_takes_nothing_from_the_others() -> None:
    answer = "## Should have been used\nNone.\n\n## Do not exist\n1. **a-tool**: x\n\n## Could be improved\nNone."
    assert read_missing_tools(answer) == (MissingTool("a-tool", "x", ABSENT),)


@given(st.text(alphabet=st.sampled_from("1.-*`_:# \nabAB—") | st.characters(), max_size=200))
def test_any_answer_is_read(answer: str) -> None:
    found = read_missing_tools(answer) or ()
    assert len({(tool.name, tool.kind) for tool in found}) == len(found)
    assert all(tool.name == tool_name(tool.name) != "" for tool in found)


def test_a_huge_answer_is_read_and_bounded() -> None:
    many = read_missing_tools("\n".join(f"{n}. **tool-{n}**: x" for n in range(50_000)))
    assert many is not None
    assert len(many) == 50
    assert read_missing_tools("-" * 1_000_000) is None
    assert read_missing_tools("* " * 500_000) is None
