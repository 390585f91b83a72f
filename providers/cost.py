"""What a call cost: tokens times price, cached and reasoning tokens included. Unknown stays None."""

from dataclasses import dataclass

from core.configuration import Price
from providers.litellm_setup import load
from providers.price_table import entry_of, plain_cost

BASELINE_PREFIX = "baseline/"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one call. Cached tokens are part of the input, reasoning tokens of the output; None: unknown."""

    input: int | None = None
    output: int | None = None
    cached_input: int | None = None
    reasoning: int | None = None
    cache_written: int | None = None
    """Part of the input that the provider stored, which some bill at a price of its own."""


def cost_usd(model: str, tokens: Tokens, price: Price | None = None) -> float | None:
    """Compute the US dollars for one call of `model`, by `price` or else by LiteLLM's price table.

    None where the price or the token counts are unknown or impossible; 0.0 for the embedded baselines.
    """
    if model.startswith(BASELINE_PREFIX):
        return 0.0
    if tokens.input is None or tokens.output is None or tokens.input < 0 or tokens.output < 0:
        return None
    cached = min(max(tokens.cached_input or 0, 0), tokens.input)
    if price is not None:
        cached_price = price.input if price.cached_input is None else price.cached_input
        fresh = tokens.input - cached
        # Reasoning tokens are output tokens, and are in that count already.
        return (fresh * price.input + cached * cached_price + tokens.output * price.output) / _MILLION
    return _by_table(model, tokens, tokens.input, tokens.output, cached)


def _by_table(model: str, tokens: Tokens, input_tokens: int, output_tokens: int, cached: int) -> float | None:
    """Compute the cost by LiteLLM's table, which also has tiers, cache writes and reasoning prices; None if absent."""
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
        return None  # LiteLLM looks for some entries under another name than theirs in the table
    return float(prompt + completion)
