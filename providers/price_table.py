"""LiteLLM's price table, read from its file: LiteLLM itself takes seconds to import.

Where a call costs its tokens times their prices and nothing else, that is computed here; a test holds it to what
LiteLLM computes, for every model in question. All other models are left to LiteLLM.
"""

import json
import os
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from providers.litellm_internals import PRICE_FILE
from providers.litellm_setup import load

PROVIDERS = frozenset({"anthropic", "gemini", "groq", "mistral", "openai"})
INPUT, OUTPUT, CACHED = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"
# Fields about prices that do not touch the cost of a call as we make it: other tiers, searches, writing to a cache.
_ELSEWHERE = ("_priority", "_batches", "_flex")
_APART = ("search_context_", "cache_creation_input_token_cost", "supports_")
_OF_PRICES = ("cost", "pric", "tier", "uplift", "multiplier", "above")

Entry = Mapping[str, Any]


@cache
def entry_of(model: str) -> Entry | None:
    """Find the table's entry for a model; None where it does not state both prices, which LiteLLM would take for 0."""
    table = _table()
    provider, _, name = model.partition("/")
    entry = table.get(model)
    if entry is None and table.get(name, {}).get("litellm_provider") == provider:
        entry = table[name]
    return entry if entry is not None and all(entry.get(price) is not None for price in (INPUT, OUTPUT)) else None


def plain_cost(model: str, fresh: int, cached: int, output: int, reasoning: int) -> float | None:
    """Compute US dollars for tokens: input that is fresh, input that was cached, output, and reasoning beside it.

    None where the table has more about the model's prices than one for each of these.
    """
    entry = entry_of(model)
    if entry is None or not _is_plain(model) or (cached and entry.get(CACHED) is None):
        return None
    prompt = float(fresh) * entry[INPUT] + (float(cached) * entry[CACHED] if cached else 0.0)
    return float(prompt + (float(output) * entry[OUTPUT] + float(reasoning) * entry[OUTPUT]))


@cache
def _is_plain(model: str) -> bool:
    entry = entry_of(model)
    if entry is None or entry.get("mode") != "chat" or entry.get("litellm_provider") not in PROVIDERS or ":" in model:
        return False
    return all(map(_says_nothing_more, entry))


def _says_nothing_more(field: str) -> bool:
    if field in (INPUT, OUTPUT, CACHED) or not any(word in field for word in _OF_PRICES):
        return True
    return field.startswith(_APART) or (field.endswith(_ELSEWHERE) and "above" not in field)


@cache
def _table() -> Mapping[str, Entry]:
    """Read the table that comes with LiteLLM; or the one that it fetches, where the environment asks for that."""
    spec = find_spec("litellm")
    if os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP", "True").lower() != "true" or spec is None or spec.origin is None:
        return load().model_cost  # type: ignore[no-any-return]
    table: Mapping[str, Entry] = json.loads(Path(spec.origin).with_name(PRICE_FILE).read_bytes())
    return table
