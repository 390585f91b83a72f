"""The tables of LiteLLM: what a call costs, which parameters a model supports, and whether its prompts are cached.

An unknown cost is None.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

from evalake.core.configuration import Price
from evalake.models import litellm_internals as internals
from evalake.models.litellm_internals import PRICE_FILE, load
from evalake.models.request import ANSWERED_HERE, Request

PROVIDERS = frozenset({"anthropic", "gemini", "groq", "mistral", "openai"})
INPUT, OUTPUT, CACHED = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"
WRITTEN = "cache_creation_input_token_cost"
# Prices that our calls never pay: other tiers, searches, cache writes
_ELSEWHERE = ("_priority", "_batches", "_flex")
_APART = ("search_context_", WRITTEN, "supports_")
_OF_PRICES = ("cost", "pric", "tier", "uplift", "multiplier", "above")

Entry = Mapping[str, Any]


@cache
def entry_of(model: str) -> Entry | None:
    """Find a model's entry in LiteLLM's price table; None without both prices, which LiteLLM would read as 0."""
    table = _table()
    provider, _, name = model.partition("/")
    entry = table.get(model)
    if entry is None and table.get(name, {}).get("litellm_provider") == provider:
        entry = table[name]
    return entry if entry is not None and all(entry.get(price) is not None for price in (INPUT, OUTPUT)) else None


def plain_cost(model: str, fresh: int, cached: int, output: int, reasoning: int) -> float | None:
    """Compute the US dollars for fresh and cached input, output without reasoning, and reasoning.

    None where the table has further prices for the model.
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
    prices = (field for field in entry if any(word in field for word in _OF_PRICES))
    return all(
        field in (INPUT, OUTPUT, CACHED)
        or field.startswith(_APART)
        or (field.endswith(_ELSEWHERE) and "above" not in field)
        for field in prices
    )


@cache
def _table() -> Mapping[str, Entry]:
    """Read LiteLLM's own table from its file, without the import; or the one that it fetches, if configured."""
    spec = find_spec("litellm")
    if os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP", "True").lower() != "true" or spec is None or spec.origin is None:
        return load().model_cost  # type: ignore[no-any-return]
    table: Mapping[str, Entry] = json.loads(Path(spec.origin).with_name(PRICE_FILE).read_bytes())
    return table


BASELINE_PREFIX = "baseline/"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one call; None is unknown. Input includes cached tokens, output includes reasoning."""

    input: int | None = None
    output: int | None = None
    cached_input: int | None = None
    reasoning: int | None = None
    cache_written: int | None = None
    """The input that the provider wrote to its cache, at a price of its own."""


def cost_usd(model: str, tokens: Tokens, price: Price | None = None) -> float | None:
    """Compute the US dollars for one call of `model`, by `price` or LiteLLM's price table; 0.0 for baselines.

    None where the price or a token count is unknown or impossible.
    """
    if model.startswith(BASELINE_PREFIX):
        return 0.0
    of_call = 0.0 if price is None or price.call is None else price.call
    if price is not None and price.input is None:
        return of_call
    if tokens.input is None or tokens.output is None or tokens.input < 0 or tokens.output < 0:
        return None
    cached = min(max(tokens.cached_input or 0, 0), tokens.input)
    if price is not None and price.input is not None and price.output is not None:
        cached_price = price.input if price.cached_input is None else price.cached_input
        fresh = tokens.input - cached
        return of_call + (fresh * price.input + cached * cached_price + tokens.output * price.output) / _MILLION
    return _by_table(model, tokens, tokens.input, tokens.output, cached)


def _by_table(model: str, tokens: Tokens, input_tokens: int, output_tokens: int, cached: int) -> float | None:
    """Compute the cost by LiteLLM, with its prices for tiers, cache writes and reasoning; None for an unknown model."""
    if entry_of(model) is None:
        return None
    reasoning = min(max(tokens.reasoning or 0, 0), output_tokens)
    written = max(tokens.cache_written or 0, 0)
    if not written:
        plain = plain_cost(model, input_tokens - cached, cached, output_tokens - reasoning, reasoning)
        if plain is not None:
            return plain
    litellm = load()
    usage = litellm.Usage(
        prompt_tokens=input_tokens,
        completion_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        prompt_tokens_details={"cached_tokens": cached},
        reasoning_tokens=reasoning,
        cache_creation_input_tokens=written,
    )
    try:
        prompt, completion = litellm.cost_per_token(model=model, usage_object=usage)
    except (litellm.exceptions.ModelNotMappedError, litellm.BadRequestError):
        return None  # LiteLLM looks up some entries under another name
    return float(prompt + completion)


def batch_share(model: str, price: Price | None = None) -> float:
    """Tell which share of its price a call costs in a batch job: by `price`, else by LiteLLM's table; 1 if unknown."""
    if price is not None:
        return price.batch
    entry = entry_of(model) or {}
    shares = [
        entry[f"{name}_batches"] / entry[name] if entry.get(name) and entry.get(f"{name}_batches") else 1.0
        for name in (INPUT, OUTPUT)
    ]
    return min(max(shares), 1.0)


ASSUMED_OUTPUT_TOKENS = 1000  # where neither a limit nor an earlier reply of the model is known
_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
_REPLIES = ("n", "best_of")  # the number of replies to a request
_TOKENS_OF_A_MESSAGE = 4  # for its role and delimiters


def is_priced(model: str, price: Price | None) -> bool:
    """Tell whether the model's price is known."""
    return cost_usd(model, Tokens(input=1, output=1), price) is not None


def input_tokens(request: Request) -> int:
    """Estimate the request's input tokens; providers count slightly differently."""
    if request.model.startswith(ANSWERED_HERE):
        return 0
    texts = [str(message.get("content") or "") for message in request.messages]
    return sum(_text_tokens(request.model, text) + _TOKENS_OF_A_MESSAGE for text in texts)


def beyond_context(request: Request, limit: int | None) -> str | None:
    """Say by how many tokens a request is beyond what its model takes; None where it fits, or nobody knows.

    `limit` is the configured one, in place of that of LiteLLM's table.
    """
    if request.model.startswith(ANSWERED_HERE):
        return None
    if limit is None:
        provider, _, name = request.model.partition("/")
        bare = _table().get(name, {})
        is_theirs = str(bare.get("litellm_provider")).startswith(provider)  # like bedrock_converse
        stated = (_table().get(request.model) or (bare if is_theirs else {})).get("max_input_tokens")
        limit = stated if isinstance(stated, int) and stated > 0 else None
    longest = sum(len(str(message.get("content") or "").encode(errors="replace")) for message in request.messages)
    if limit is None or longest <= limit:  # a token has at least one byte
        return None
    tokens = input_tokens(request)
    return f"the request has {tokens:,} tokens, and {request.model} takes {limit:,}" if tokens > limit else None


def output_limit(parameters: Mapping[str, Any]) -> int | None:
    """Read the limit on output tokens from a request's parameters; None without one."""
    limits = [value for name in _OUTPUT_LIMITS if isinstance(value := parameters.get(name), int) and value > 0]
    return min(limits) if limits else None


_SENT_BESIDE = ("response_format", "tools")  # parameters that count as input


def most_usd(
    request: Request, longest_known: int | None, price: Price | None, provider_counts: float = 1.0
) -> float | None:
    """Estimate the highest cost of one attempt in US dollars; None where the price is unknown.

    The reply has the request's limit, else twice the model's longest known reply. A marked prompt is written to the
    cache as a whole. `provider_counts` is the largest ratio of the provider's token count to ours.
    """
    if request.model.startswith(BASELINE_PREFIX):
        return 0.0
    known = ASSUMED_OUTPUT_TOKENS if longest_known is None else 2 * longest_known
    replies = max([1, *(value for name in _REPLIES if isinstance(value := request.parameters.get(name), int))])
    output = (output_limit(request.parameters) or known) * replies
    beside = [json.dumps(request.parameters[name]) for name in _SENT_BESIDE if name in request.parameters]
    ours = input_tokens(request) + sum(_text_tokens(request.model, text) for text in beside)
    sent = ceil(ours * provider_counts)
    writes = request.cache_prompt and _takes_marks(request.model) and WRITTEN in (entry_of(request.model) or {})
    return cost_usd(request.model, Tokens(sent, output, cache_written=sent if writes else None), price)


@lru_cache(maxsize=64)  # for long prompts that many requests share
def _text_tokens(model: str, text: str) -> int:
    return int(load().token_counter(model=model, text=text))


# Parameters: which of a suite's a model supports, by LiteLLM.


# A model may refuse a temperature beside one of these
_SAMPLING = frozenset({"temperature", "top_p", "top_k", "reasoning_effort", "thinking"})


def taken(model: str, wished: Mapping[str, Any], configured: Mapping[str, Any]) -> dict[str, Any]:
    """List the wished parameters that the model supports and the configuration does not set.

    A temperature is left out where the configuration sets any parameter of sampling or reasoning. Baselines and models
    of unknown providers support none.
    """
    if model.startswith(ANSWERED_HERE):
        return {}
    open_ = {name: value for name, value in wished.items() if name not in configured}
    if _SAMPLING & configured.keys():
        open_.pop("temperature", None)
    return {name: value for name, value in open_.items() if _takes(model, name, json.dumps(value))}


@lru_cache(maxsize=1024)
def _takes(model: str, parameter: str, written: str) -> bool:
    litellm, value = load(), json.loads(written)
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
        if parameter == "response_format" and not litellm.supports_response_schema(name, provider):
            return False
        internals.provider_parameters(provider, name, [{"role": "user", "content": ""}], {parameter: value})
    except litellm.BadRequestError:  # an unsupported parameter or an unknown provider
        return False
    return True


# Prompt caching: marks of the shared beginning of a conversation, for providers that cache only marked prompts.
# Claude needs a mark; most other providers find the beginning themselves. The mark is not part of the prompt hash.


TOLD = frozenset({"anthropic", "bedrock", "openrouter", "vertex_ai"})  # providers of Claude
MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}  # cached for five minutes after each use
_STABLE = ("system", "user")  # the first message of each role is the same in every turn


def messages_of(request: Request, provider: str) -> list[dict[str, Any]]:
    """Copy the request's messages, with marks where the request wants caching and the provider needs marks."""
    messages: list[dict[str, Any]] = [dict(message) for message in request.messages]
    if not request.cache_prompt or provider not in TOLD or not _takes_marks(request.model):
        return messages
    for role in _STABLE:
        first = next((message for message in messages if message["role"] == role and message["content"]), None)
        if first is not None:
            first["content"] = [{"type": "text", "text": first["content"], **MARK}]
    return messages


def _takes_marks(model: str) -> bool:
    """Tell whether the model is a Claude with prompt caching, by LiteLLM's table."""
    entry = entry_of(model)
    return "claude" in model.lower() and (entry is None or bool(entry.get("supports_prompt_caching")))
