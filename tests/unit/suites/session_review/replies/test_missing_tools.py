"""Missing tools are read from lists of many forms, each of the kind that its heading says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.session_review import replies

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
        ("1. Rationale: shows the leak", None),  # a reason without a name
        ("A better search would have been good.", None),
        ("None of the tools showed the heap.", None),
        ("", None),
        (None, None),
    ],
)
def test_missing_tools_are_read_from_lists_of_many_forms(
    answer: str | None, tools: list[tuple[str, str]] | None
) -> None:
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
