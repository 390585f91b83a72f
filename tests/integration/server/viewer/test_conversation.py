"""The conversation about a sample, call by call: as it was said, with what failed and what was said before."""

import httpx

from evalake.server.viewer.conversation import tool_calls
from tests.integration.server.viewer.test_item import calls_of, item
from tests.integration.server.viewer.world import AUDIT, AUDITOR, JUDGE, JUDGEMENT, SILENT, UNREADABLE, World


def test_the_whole_conversation_is_there_to_the_repaired_judgement(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    audit, first, repaired = calls_of(whole, AUDITOR)

    assert (audit["by"], first["by"], repaired["by"]) == ("subject", "judge", "judge")
    assert "2|   function withdraw() public" in audit["messages"][-1]["content"]
    assert audit["text"] == AUDIT
    assert audit["thinking"] == "The call comes before the balance is set."
    assert audit["thinking"] not in audit["answer"]
    assert [call["text"] for call in (first, repaired)] == [UNREADABLE, JUDGEMENT]
    assert UNREADABLE in [message["content"] for message in repaired["messages"]]
    assert {call["model"] for call in (first, repaired)} == {JUDGE}
    assert (audit["attempts"], audit["input_tokens"], audit["cost_usd"], audit["latency_ms"]) == (2, 100, 0.01, 1500.0)


def test_every_earlier_answer_to_the_same_prompt_is_told(http: httpx.Client, world: World) -> None:
    audit = calls_of(item(http, world.audits, "bank-1"), AUDITOR)[0]

    assert [(each["text"], each["replicate"], each["run_id"]) for each in audit["others"]] == [
        ("an earlier audit", 1, "an-earlier-run")
    ]


def test_a_call_that_was_given_up_on_says_why(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    answer = next(each for each in whole["answers"] if each["model"] == SILENT)
    [call] = calls_of(whole, SILENT)

    assert (answer["verdict"], answer["correct"], answer["error"]) == (None, None, "rate_limit")
    assert (call["error_kind"], call["error"], call["attempts"], call["text"]) == (
        "rate_limit",
        "too many requests",
        5,
        None,
    )


def test_tool_calls_are_told_apart_from_what_was_said_whatever_their_form() -> None:
    well = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}

    assert [(each.name, each.arguments) for each in tool_calls([well, {"odd": True}, "text"])] == [
        ("look", '{"at": 1}'),
        ("", '{"odd": true}'),
        ("", "text"),
    ]
    assert tool_calls(None) == tool_calls({"name": "look"}) == []
