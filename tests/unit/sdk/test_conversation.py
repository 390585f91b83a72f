"""A conversation begins with who is measured, goes on with the judge, and ends; then its item has rows."""

import pytest

from evalake.models.request import Reply
from evalake.sdk import Exchange, Item
from evalake.suites.registry import suite, suite_names


@pytest.mark.parametrize("name", suite_names())
def test_it_begins_with_who_is_measured_and_comes_to_an_end(name: str) -> None:
    of = suite(name)
    (sample, *_) = of.data.read(of.data.starter[0]).samples
    model = of.conversation.default_models[0] if of.conversation.asks_subject else "a/model"
    judge = of.conversation.default_judges[0] if of.is_judged else None
    item = Item(sample, model, judge)
    answered: list[Exchange] = []
    asked = []
    while (request := of.conversation.next_request(item, answered, of.options)) is not None:
        assert len(answered) < 10
        asked.append(request.model)
        reply = Reply(of.conversation.baselines[request.model.removeprefix("baseline/")](request.messages))
        answered.append(Exchange(request.prompt_hash, reply))
    assert asked[0] == (model if of.conversation.asks_subject else judge)
    assert set(asked[1:]) <= {judge}
    assert len({exchange.prompt_hash for exchange in answered}) == len(answered), "no request is asked twice"
    (row, *_) = of.scoring.score(item, answered, of.options)[of.results.table]
    assert (row["model"], row["sample_hash"], row["replicate"]) == (model, sample.sample_hash, 0)


@pytest.mark.parametrize("name", suite_names())
def test_what_is_asked_follows_from_item_and_replies_alone(name: str) -> None:
    of = suite(name)
    first, second, *_ = of.data.read(of.data.starter[0]).samples
    items = [Item(sample, "a/model", "a/judge", of.prompts.types[0]) for sample in (first, second)]
    hashes = [
        request.prompt_hash
        for item in (*items, *items)
        if (request := of.conversation.next_request(item, (), of.options))
    ]
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]
    later = of.conversation.next_request(
        Item(first, "a/model", "a/judge", of.prompts.types[0], replicate=3), (), of.options
    )
    assert later is not None
    assert later.prompt_hash == hashes[0], "repeats are calls of their own by their number, not by their words"
