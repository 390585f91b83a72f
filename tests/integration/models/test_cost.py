"""Costs by hand: tokens times dollars per million, and None for everything unknown."""

import pytest

from evalake.core.configuration import Configuration, ModelOptions, Price
from evalake.models.client import Client
from evalake.models.cost import Tokens, cost_usd
from evalake.models.request import Reply
from tests.integration.models.support import answer, request
from tests.servers.model_server import ModelServer

PRICE = Price(input=2.0, output=10.0, cached_input=0.5)


@pytest.mark.parametrize(
    ("tokens", "price", "dollars"),
    [
        (Tokens(1_000_000, 0), PRICE, 2.0),
        (Tokens(0, 1_000_000), PRICE, 10.0),
        (Tokens(1000, 200), PRICE, 0.002 + 0.002),
        (Tokens(1000, 200, cached_input=400), PRICE, 600 * 2e-6 + 400 * 0.5e-6 + 200 * 10e-6),
        (Tokens(1000, 200, cached_input=400), Price(input=2.0, output=10.0), 1000 * 2e-6 + 200 * 10e-6),
        (Tokens(1000, 200, reasoning=150), PRICE, 1000 * 2e-6 + 200 * 10e-6),  # reasoning is in the output already
        (Tokens(1000, 200, cached_input=5000), PRICE, 1000 * 0.5e-6 + 200 * 10e-6),  # more cached than there is
        (Tokens(1000, 200, cached_input=-5), PRICE, 1000 * 2e-6 + 200 * 10e-6),  # fewer than none
        (Tokens(1000, 200), Price(input=0.0, output=0.0), 0.0),
        (Tokens(1000, None), PRICE, None),
        (Tokens(None, 200), PRICE, None),
        (Tokens(), PRICE, None),
        (Tokens(-1, 200), PRICE, None),
    ],
)
def test_a_price_of_the_configuration(tokens: Tokens, price: Price, dollars: float | None) -> None:
    assert cost_usd("openai/gpt-4o-mini", tokens, price) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("model", "tokens", "dollars"),
    [
        # 0.15, 0.60 and, cached, 0.075 dollars per million
        ("openai/gpt-4o-mini", Tokens(1000, 200), 1000 * 0.15e-6 + 200 * 0.6e-6),
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
        ("hosted_vllm/my-own", Tokens(1000, 200), None),
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
