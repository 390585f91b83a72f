"""What a body holds is counted against what was read: a session that lost something says how much."""

from typing import Any

import pytest

from evalake.suites.session_review.sources.census import require_whole
from evalake.suites.session_review.sources.generic import RefusedError, read_generic
from evalake.suites.session_review.sources.read import read_body
from evalake.suites.session_review.sources.tarsy import read_detail
from tests.unit.suites.session_review.support import called, detail, said, stage


def a_detail(**changes: Any) -> dict[str, Any]:
    events = [called(1, "df", {"path": "/"}, "99 %"), called(2, "du", {}, {"content": "8 G"})]
    return detail(stage("disk", [*events, said(3, ("user", "go on"), ("assistant", "It is full."))]), **changes)


def generic(*messages: Any, **changes: Any) -> dict[str, Any]:
    return {"session_id": "g", "alert": "disk full", "messages": list(messages), **changes}


SPOKEN = {"role": "assistant", "content": "I look."}


def test_a_body_that_was_read_whole_passes() -> None:
    require_whole(a_detail(), read := read_detail(a_detail()))
    assert [each.result for each in read.tool_calls] == ["99 %", "8 G"]
    call = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "1", "name": "df"}]}
    for content, error in (("99 %", None), ("", None), ([{"type": "text", "text": ""}], None), (None, "denied")):
        body = generic(call, {"role": "tool", "tool_call_id": "1", "content": content, "error": error})
        require_whole(body, whole := read_generic(body))
        assert len(list(whole.tool_calls)) == 1


def test_calls_in_lists_that_no_reader_knows_are_told_with_their_number() -> None:
    more = [called(7, "ls", {}, "core.1"), called(8, "lsof", {}, None)]
    whole = a_detail()
    whole["stages"][0]["later_calls"] = more
    with pytest.raises(RefusedError, match=r"^2 of 4 tool calls and 1 of 3 tool results were not read$"):
        read_body(whole)


def test_what_was_left_out_on_purpose_is_not_lost() -> None:
    chat = stage("c", [called(7, "ls", {}, "core.1"), said(8, ("assistant", "Hello"))], chat_id="c-1")
    scored = stage("s", [said(9, ("assistant", "Total: 3"))], stage_type="scoring")
    body = a_detail(session_level_interactions=[said(10, ("assistant", "In short"))])
    body["stages"] += [chat, scored]
    assert len(list(read_body(body).tool_calls)) == 2


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([{"type": "function_call_output", "call_id": "1", "output": "99 %"}], "1 of 1 tool results were not read"),
        ([{"type": "function_call", "call_id": "1", "name": "df"}], "1 of 1 tool calls were not read"),
        ([{"role": "human", "content": "why?"}, {"role": "ai", "content": "so"}], "2 of 3 messages were not read"),
        ([{"role": "assistant", "content": [{"toolUse": {"name": "df"}}]}], "1 of 1 tool calls were not read"),
        ([{"type": "ai", "content": "so"}, "so"], "2 of 3 messages were not read"),
        ([{"role": "assistant", "text": "so"}], "1 of 2 messages were not read"),
        ([{"role": "assistant", "content": "so", "tool_calls": {"a": 1}}], "1 of 3 messages were not read"),
        ([{"role": "event", "steps": [{"tool_name": "df", "tool_output": "9"}]}], "1 of 1 tool calls"),
    ],
)
def test_forms_of_messages_that_are_not_known_are_told(more: list[Any], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        read_body(generic(SPOKEN, *more))


def test_what_others_wrote_is_no_part_of_the_session() -> None:
    looks = {"role": "assistant", "content": "look-alike", "tool_calls": [{"id": "9", "name": "x"}]}
    body = a_detail(alert_data={"messages": [looks]})
    body["stages"][0]["chronological_interactions"].append(called(5, "cat", {"a": [looks]}, {"b": [looks]}))
    assert len(list(read_body(body).tool_calls)) == 3
