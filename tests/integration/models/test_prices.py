"""Prices: of calls, of runs before they begin, and of kept prompts."""

import random
import re
import subprocess
import sys
from typing import Any

import pytest

from evalake.core.configuration import Configuration, ModelOptions, Price
from evalake.models import cost
from evalake.models import cost as price_table
from evalake.models.client import Client
from evalake.models.cost import PROVIDERS, Tokens, cost_usd, messages_of, plain_cost
from evalake.models.litellm_internals import load
from evalake.models.request import Reply, Request
from tests.cases import cases_beside
from tests.integration.models.support import answer, request
from tests.servers.model_server import ModelServer

CASES = cases_beside(__file__, "prices.json")

# Costs by hand: tokens times dollars per million, and None for everything unknown.

PRICE = Price(input=2.0, output=10.0, cached_input=0.5)


@pytest.mark.parametrize(
    ("tokens", "price", "dollars"),
    [
        (Tokens(1_000_000, 0), PRICE, 2.0),
        (Tokens(0, 1_000_000), PRICE, 10.0),
        (Tokens(1000, 200, cached_input=400), PRICE, 600 * 2e-6 + 400 * 0.5e-6 + 200 * 10e-6),
        (Tokens(1000, 200, cached_input=400), Price(input=2.0, output=10.0), 1000 * 2e-6 + 200 * 10e-6),
        (Tokens(1000, 200, reasoning=150), PRICE, 1000 * 2e-6 + 200 * 10e-6),  # reasoning is in the output already
        (Tokens(1000, 200, cached_input=5000), PRICE, 1000 * 0.5e-6 + 200 * 10e-6),  # more cached than there is
        (Tokens(1000, 200, cached_input=-5), PRICE, 1000 * 2e-6 + 200 * 10e-6),  # fewer than none
        (Tokens(1000, 200), Price(input=0.0, output=0.0), 0.0),
        (Tokens(1000, None), PRICE, None),
        (Tokens(None, 200), PRICE, None),
        (Tokens(-1, 200), PRICE, None),
    ],
)
def test_a_price_of_the_configuration(tokens: Tokens, price: Price, dollars: float | None) -> None:
    assert cost_usd("openai/gpt-4o-mini", tokens, price) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("model", "tokens", "dollars"),
    [
        # 0.15, 0.60 and, cached, 0.075 dollars per million
        ("gpt-4o-mini", Tokens(1000, 200), 1000 * 0.15e-6 + 200 * 0.6e-6),
        ("openai/gpt-4o-mini", Tokens(1000, 200, cached_input=400), 600 * 0.15e-6 + 400 * 0.075e-6 + 200 * 0.6e-6),
        # 1.10, 4.40 and, cached, 0.55: reasoning is billed as output, once
        ("openai/o3-mini", Tokens(1000, 900, cached_input=0, reasoning=800), 1000 * 1.1e-6 + 900 * 4.4e-6),
        # 0.40 and 1.20, but 4.00 for reasoning
        ("dashscope/qwen-plus-2025-07-14", Tokens(1000, 500, reasoning=300), 0.0004 + 200 * 1.2e-6 + 300 * 4e-6),
        ("dashscope/qwen-plus-2025-07-14", Tokens(1000, 500, reasoning=900), 0.0004 + 500 * 4e-6),  # not more than all
        # 1.00 and 5.00, read from the cache 0.10, written to it 1.25
        (
            "anthropic/claude-haiku-4-5",
            Tokens(1000, 200, cached_input=400, cache_written=100),
            500 * 1e-6 + 400 * 0.1e-6 + 100 * 1.25e-6 + 200 * 5e-6,
        ),
        # 1.25 and 10, above 200,000 input tokens 2.50 and 15
        ("gemini/gemini-2.5-pro", Tokens(100_000, 1000), 100_000 * 1.25e-6 + 1000 * 10e-6),
        ("gemini/gemini-2.5-pro", Tokens(300_000, 1000), 300_000 * 2.5e-6 + 1000 * 15e-6),
        ("openai/no-such-model", Tokens(1000, 200), None),
        ("mistral/gpt-4o-mini", Tokens(1000, 200), None),  # not what that provider charges
        ("ai21/jamba-1.5", Tokens(1000, 200), None),  # which LiteLLM lists, and then does not find
        ("openai/gpt-4o-mini", Tokens(), None),
        ("baseline/always-block", Tokens(), 0.0),
    ],
)
def test_the_price_table(model: str, tokens: Tokens, dollars: float | None) -> None:
    assert cost_usd(model, tokens) == pytest.approx(dollars)


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_the_cost_of_a_call(model_server: ModelServer, provider: str) -> None:
    model_server.rule(
        usage={
            "prompt_tokens": 1000,
            "completion_tokens": 200,
            "total_tokens": 1200,
            "prompt_tokens_details": {"cached_tokens": 400},
            "completion_tokens_details": {"reasoning_tokens": 150},
        }
    )
    model = f"{provider}/mine"
    options = ModelOptions(api_base=model_server.api_base, price=PRICE)
    with Client(Configuration(models={model: options})) as client:
        reply = answer(client, request("x", model))
    assert isinstance(reply, Reply)
    assert (reply.input_tokens, reply.cached_input_tokens) == (1000, 400)
    assert (reply.output_tokens, reply.reasoning_tokens) == (200, 150)
    assert reply.cost_usd == pytest.approx(600 * 2e-6 + 400 * 0.5e-6 + 200 * 10e-6)


def test_impossible_counts_are_unknown(model_server: ModelServer) -> None:
    model_server.rule(usage={"prompt_tokens": 10**30, "completion_tokens": 5, "total_tokens": 10**30 + 5})
    options = ModelOptions(api_base=model_server.api_base, price=PRICE)
    with Client(Configuration(models={"hosted_vllm/m": options})) as client:
        reply = answer(client, request("x"))
    assert isinstance(reply, Reply)
    assert (reply.input_tokens, reply.cost_usd) == (None, None)


# What a call may cost: its tokens and the longest reply that it may get, and nothing for what is free or unknown.

RATE = Price(input=1_000_000.0, output=1_000_000.0)  # a dollar a token
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
    assert cost.most_usd(asked, None, RATE) == tokens + cost.ASSUMED_OUTPUT_TOKENS
    assert cost.most_usd(asked, 30, RATE) == tokens + 60
    assert cost.most_usd(request("one", max_tokens=7), 30, RATE) == tokens + 7
    assert cost.most_usd(asked, 30, RATE, provider_counts=1.5) == pytest.approx(tokens * 1.5 + 60, abs=1)


def test_what_is_free_costs_nothing_and_what_is_unknown_is_not_known() -> None:
    assert cost.most_usd(request("one", "baseline/always-block"), None, None) == 0.0
    assert cost.most_usd(request("one"), None, None) is None
    assert cost.is_priced(MODEL, RATE)
    assert cost.is_priced("openai/gpt-4o-mini", None)
    assert not cost.is_priced(MODEL, None)


@pytest.mark.parametrize(("model", "limit", "words", "is_beyond"), CASES["beyond"])
def test_a_request_beyond_the_context_is_told_with_its_tokens(
    model: str, limit: int | None, words: int, is_beyond: bool
) -> None:
    told = cost.beyond_context(request("word " * words, model), limit)
    assert (told is not None) == is_beyond
    if told:
        assert re.fullmatch(rf"the request has [\d,]+ tokens, and {model} takes (100|128,000)", told)


# LiteLLM's price table, read without LiteLLM: the same prices, and the same costs to the last bit.

DRAWS = 3
MOST = {"input": 300_000, "output": 9000}


def _plain_models() -> list[str]:
    table = load().model_cost
    names = [name for name, entry in table.items() if entry.get("litellm_provider") in PROVIDERS]
    whole = [f"{table[name]['litellm_provider']}/{name}" for name in names if "/" not in name]
    return [name for name in (*names, *whole) if plain_cost(name, 1, 0, 1, 0) is not None]


def test_the_file_is_the_table_that_litellm_has() -> None:
    table = load().model_cost
    assert {name: price_table._table()[name] for name in table} == table


def test_costs_are_those_that_litellm_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    models = _plain_models()
    assert {"gpt-4o-mini", "openai/gpt-4o", "anthropic/claude-sonnet-4-5"} < set(models)
    drawn = random.Random(1)
    asked = []
    for model in models:
        for _ in range(DRAWS):
            sent, got = drawn.randint(1, MOST["input"]), drawn.randint(0, MOST["output"])
            cached, thought = drawn.choice([0, drawn.randint(0, sent)]), drawn.choice([0, drawn.randint(0, got)])
            asked.append((model, Tokens(sent, got, cached, thought)))
    plain = [cost_usd(*each) for each in asked]
    monkeypatch.setattr("evalake.models.cost.plain_cost", lambda *_: None)
    assert [(each, cost) for each, cost in zip(asked, plain, strict=True) if cost != cost_usd(*each)] == []


def test_a_known_cost_and_an_unknown_model_take_no_import_of_litellm() -> None:
    code = (
        "import sys; from evalake.models.cost import Tokens, cost_usd\n"
        "costs = cost_usd('openai/gpt-4o-mini', Tokens(1000, 100)), cost_usd('hosted_vllm/mine', Tokens(1000, 100))\n"
        "print([c and round(c, 9) for c in costs], 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0.00021, None] False\n"


# What is marked for providers to keep, and what is not.

OPENING = ({"role": "system", "content": "You judge."}, {"role": "user", "content": "a long session"})
TURNS = (*OPENING, {"role": "assistant", "content": "50"}, {"role": "user", "content": "which tools are missing?"})


def marked(model: str, messages: Any = TURNS, cache_prompt: bool = True) -> list[str]:
    """The texts that are marked, all messages being there in order."""
    sent = messages_of(Request(model, messages, {}, cache_prompt=cache_prompt), model.partition("/")[0])
    texts = [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in sent]
    assert texts == [message["content"] for message in messages]
    blocks = [block for m in sent if isinstance(m["content"], list) for block in m["content"]]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in blocks)
    return [block["text"] for block in blocks]


@pytest.mark.parametrize("model", CASES["marked"])
def test_what_every_turn_begins_with_is_marked_alike_in_every_turn(model: str) -> None:
    assert marked(model, OPENING) == marked(model) == ["You judge.", "a long session"]


@pytest.mark.parametrize("model", CASES["unmarked"])
def test_who_finds_it_himself_or_cannot_keep_it_is_told_nothing(model: str) -> None:
    assert marked(model) == []


def test_nothing_is_marked_where_no_further_turn_is_likely() -> None:
    assert marked("anthropic/claude-opus-4-5", cache_prompt=False) == []


@pytest.mark.parametrize("model", ["anthropic/claude-opus-4-5", "claude-opus-4-5"])
def test_at_worst_a_marked_prompt_is_written_at_a_price_of_its_own(model: str) -> None:
    plain, kept = (cost.most_usd(Request(model, OPENING, {}, cache_prompt=keeps), 0, None) for keeps in (False, True))
    assert kept == pytest.approx(1.25 * (plain or 0))


def test_an_empty_text_gets_no_mark() -> None:
    assert marked("anthropic/claude-opus-4-5", ({"role": "system", "content": ""}, *OPENING[1:])) == ["a long session"]
