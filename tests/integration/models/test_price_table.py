"""LiteLLM's price table, read without LiteLLM: the same prices, and the same costs to the last bit."""

import random
import subprocess
import sys

import pytest

from evalake.models import cost as price_table
from evalake.models.cost import PROVIDERS, Tokens, cost_usd, plain_cost
from evalake.models.litellm_setup import load

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
