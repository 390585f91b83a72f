"""Calls are counted once each, for the run and for each pair of subject and judge."""

from dataclasses import replace

from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item
from evalake.suites.registry import suite
from evalake.tasks.converse import Conversation
from evalake.tasks.measure import CallCounter

(SAMPLE, *_) = suite("command_guard").data.read("starter").samples
PAID = Reply("yes", "stop", input_tokens=10, output_tokens=2, cost_usd=0.25)


def conversation(judge: str | None, *answered: Exchange) -> Conversation:
    return Conversation(Item(SAMPLE, "a/subject", judge, "direct", 0), answered=list(answered))


def test_a_call_that_two_conversations_share_is_counted_once_for_the_run() -> None:
    subject = Exchange("s", PAID)
    counter = CallCounter()
    counter.add([conversation(judge, subject, Exchange(f"by {judge}", PAID)) for judge in ("one", "two")])
    counter.add([conversation("one", subject)])
    assert (counter.total.calls_made, counter.total.cost_usd) == (3, 0.75)
    assert {pair: tally.calls_made for pair, tally in counter.pairs.items()} == {
        ("a/subject", "one"): 2,
        ("a/subject", "two"): 2,
    }


def test_the_ledger_avoids_a_cost_and_a_failure_is_counted_apart() -> None:
    counter = CallCounter()
    counter.add([conversation(None, Exchange("known", PAID, from_ledger=True))])
    counter.add([conversation(None, Exchange("failed", Failure("timeout", "too late", 3)))])
    counter.add([conversation(None, Exchange("refused", Failure("budget", "not asked", 0)))])
    total = counter.total
    assert (total.calls_made, total.calls_from_ledger, total.calls_failed) == (0, 1, 1)
    assert (total.cost_usd, total.cost_usd_avoided) == (0.0, 0.25)


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    counter = CallCounter()
    counter.add(
        [conversation(None, Exchange("a", PAID)), conversation(None, Exchange("b", replace(PAID, cost_usd=None)))]
    )
    assert (counter.total.calls_made, counter.total.cost_usd) == (2, None)
