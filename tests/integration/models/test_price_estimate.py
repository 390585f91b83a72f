"""What a call may cost: its tokens and the longest reply that it may get, and nothing for what is free or unknown."""

import re

import pytest

from evalake.core.configuration import Price
from evalake.models import cost
from tests.integration.models.support import request

PRICE = Price(input=1_000_000.0, output=1_000_000.0)  # a dollar a token
MODEL = "hosted_vllm/m"


def test_a_longer_prompt_has_more_tokens_and_a_baseline_none() -> None:
    short, long = cost.input_tokens(request("one")), cost.input_tokens(request("one " * 100))
    assert 0 < short < 100 < long < 110
    assert cost.input_tokens(request("one " * 100, "baseline/always-block")) == 0


@pytest.mark.parametrize(
    ("parameters", "limit"),
    [({}, None), ({"max_tokens": 7}, 7), ({"max_tokens": 9, "max_completion_tokens": 7}, 7), ({"max_tokens": 0}, None)],
)
def test_the_smallest_limit_of_a_reply_counts(parameters: dict[str, int], limit: int | None) -> None:
    assert cost.output_limit(parameters) == limit


def test_a_reply_is_as_long_as_is_allowed_or_twice_the_longest_known() -> None:
    asked = request("one")
    tokens = cost.input_tokens(asked)
    assert cost.most_usd(asked, None, PRICE) == tokens + cost.ASSUMED_OUTPUT_TOKENS
    assert cost.most_usd(asked, 30, PRICE) == tokens + 60
    assert cost.most_usd(request("one", max_tokens=7), 30, PRICE) == tokens + 7
    assert cost.most_usd(asked, 30, PRICE, provider_counts=1.5) == pytest.approx(tokens * 1.5 + 60, abs=1)


def test_what_is_free_costs_nothing_and_what_is_unknown_is_not_known() -> None:
    assert cost.most_usd(request("one", "baseline/always-block"), None, None) == 0.0
    assert cost.most_usd(request("one"), None, None) is None
    assert cost.is_priced(MODEL, PRICE)
    assert cost.is_priced("openai/gpt-4o-mini", None)
    assert not cost.is_priced(MODEL, None)


@pytest.mark.parametrize(
    ("model", "limit", "words", "is_beyond"),
    [
        ("hosted_vllm/own", 100, 300, True),
        ("hosted_vllm/own", 10_000, 300, False),
        ("hosted_vllm/own", None, 300, False),  # nobody knows
        ("openai/gpt-4o-mini", None, 140_000, True),  # as LiteLLM's table says
        ("openai/gpt-4o-mini", 200_000, 140_000, False),
        ("baseline/any", 1, 300, False),
    ],
)
def test_a_request_beyond_the_context_is_told_with_its_tokens(
    model: str, limit: int | None, words: int, is_beyond: bool
) -> None:
    told = cost.beyond_context(request("word " * words, model), limit)
    assert (told is not None) == is_beyond
    if told:
        assert re.fullmatch(rf"the request has [\d,]+ tokens, and {model} takes (100|128,000)", told)
