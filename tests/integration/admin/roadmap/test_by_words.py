"""Grouping by the words in common: deterministic, total, and blind to order."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.admin import roadmap
from evalake.admin.roadmap import group_by_words


def test_names_that_share_words_are_together_and_others_apart() -> None:
    named = {
        "packet-capture": "would show packets on the wire",
        "capture-packets": "packets of the pod",
        "login-history": "who signed in",
        "history-of-logins": "logins of the user",
        "query-plan": "",
    }
    assert group_by_words(named) == [
        ["capture-packets", "packet-capture"],
        ["history-of-logins", "login-history"],
        ["query-plan"],
    ]


def test_words_that_say_nothing_join_nothing() -> None:
    assert group_by_words(
        {"get-tool": "the agent would have seen it", "list-tool": "it would have seen the agent"}
    ) == [["get-tool"], ["list-tool"]]


def test_names_of_a_later_portion_join_the_groups_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {
        f"{letter}-{what}": "" for letter in "abcdef" for what in ("packet-capture", "login-history", "heap-graph")
    }
    at_once = group_by_words(tools)
    assert len(at_once) == 3
    monkeypatch.setattr(roadmap, "NAMES_COMPARED", 4)
    assert group_by_words(tools) == at_once


def test_ten_thousand_names_take_little_memory() -> None:
    named = {f"probe-{n}": f"would have shown subsystem{n % 500} of node{n}" for n in range(10_000)}
    tracemalloc.start()
    groups = group_by_words(named)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, groups)) == len(named)
    assert most < 300e6, "all pairs of ten thousand names would be 800 MB"


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=12))
def test_each_name_is_in_one_group_whatever_it_is(named: dict[str, str]) -> None:
    groups = group_by_words(named)
    assert sorted(name for group in groups for name in group) == sorted(named)
    assert groups == group_by_words(dict(reversed(named.items())))
