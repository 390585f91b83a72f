"""The embedded judge answers in the form demanded, ranks good above hopeless, and refuses what holds no session."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.baselines import BaselineRefusedError
from suites.session_review.baselines.rubric_judge import judge
from suites.session_review.replies.missing_tools import read_missing_tools
from suites.session_review.replies.scores import read_total
from suites.session_review.session import Tool, ToolCall
from suites.session_review.sources.read import read_dataset
from tests.suites.session_review.baselines.rubric_judge.judged import Messages, a_session, opening, review, total

STARTER = {sample.sample_id: sample for sample in read_dataset("starter").samples}


@pytest.mark.parametrize("name", STARTER)
def test_both_turns_have_the_form_that_is_demanded(name: str) -> None:
    row = review(STARTER[name])
    assert row["status"] == "completed"
    assert row["attempts"] == 1
    assert row["breakdown_consistent"] is True
    assert row["failure_tags"] is not None
    assert row["missing_tools"] is not None
    assert len(str(row["score_analysis"]).split()) >= 200


def test_good_starter_sessions_rank_above_poor_ones_and_those_above_the_hopeless_one() -> None:
    totals = {name: total(sample) for name, sample in STARTER.items()}
    good = ("checkout-pool-exhausted", "stolen-ci-token")
    middling = ("search-latency-two-agents", "disk-pressure-archive")
    poor = ("consumer-lag-truncated", "orders-to-the-judge", "certificate-half-looked-at")
    assert min(totals[name] for name in good) > max(totals[name] for name in middling)
    assert min(totals[name] for name in middling) > max(totals[name] for name in poor)
    assert min(totals[name] for name in poor) > totals["restart-and-hope"]
    assert totals["checkout-pool-exhausted"] >= 75
    assert totals["restart-and-hope"] < 25


def test_it_is_deterministic() -> None:
    for sample in STARTER.values():
        assert review(sample) == review(sample)


def test_a_reminder_is_answered_with_breakdown_and_total() -> None:
    messages = opening(a_session())
    first = judge(messages)
    reminded = judge(
        [*messages, {"role": "assistant", "content": first}, {"role": "user", "content": "The total, please."}]
    )
    assert read_total(reminded) == read_total(first)


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "hello"}], [{"role": "system", "content": "x"}]])
def test_without_a_session_it_refuses(messages: Messages) -> None:
    with pytest.raises(BaselineRefusedError):
        judge(messages)


@given(st.text(max_size=300), st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_session_gets_a_total(result: str, analysis: str) -> None:
    found = read_total(judge(opening(a_session(ToolCall("search_logs", result=result), analysis=analysis))))
    assert found is not None
    assert 0 <= found <= 84


def second_turn(alert: str, *tools: str, calls: Sequence[str] = ()) -> str:
    """What the judge answers when it is asked which tools were missing."""
    whole = replace(a_session(*(ToolCall(name, result="x") for name in calls)), alert=alert)
    stage = replace(whole.stages[0], tools=tuple(Tool(name, description="x") for name in tools))
    asked = [*opening(replace(whole, stages=(stage,))), {"role": "assistant", "content": "50"}]
    return judge([*asked, {"role": "user", "content": "MISSING TOOLS"}])


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (second_turn("disk full", "search_logs", calls=["search_logs"]), {}),
        (second_turn("disk full", "search_logs"), {"search-logs": "unused"}),
        (second_turn("memory is short", "search_logs", calls=["search_logs"]), {"memory-usage-history": "absent"}),
        (second_turn("memory is short", "get_metrics", calls=["get_metrics"]), {}),
    ],
    ids=["none", "unused", "absent", "there"],
)
def test_the_second_turn_names_what_was_unused_and_what_is_wished_for(answer: str, kinds: dict[str, str]) -> None:
    assert {tool.name: tool.kind for tool in read_missing_tools(answer) or ()} == kinds
    assert read_missing_tools(answer) is not None
