"""What a call may cost before it is made: tokens counted by LiteLLM's tokenisers, and how long replies get."""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil
from typing import Any

from core.configuration import Price
from providers.cost import BASELINE_PREFIX, Tokens, cost_usd
from providers.litellm_setup import load
from providers.request import Request

ASSUMED_OUTPUT_TOKENS = 1000  # of a reply of a model that has not replied yet, where its requests set no limit
_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
_REPLIES = ("n", "best_of")  # how many replies a request asks for
_TOKENS_OF_A_MESSAGE = 4  # that its role and its ends take


def is_priced(model: str, price: Price | None) -> bool:
    """Tell whether it is known what a call of the model costs."""
    return cost_usd(model, Tokens(input=1, output=1), price) is not None


def input_tokens(request: Request) -> int:
    """Estimate how many tokens the request's messages are: providers count a little differently."""
    if request.model.startswith(BASELINE_PREFIX):
        return 0
    texts = [str(message.get("content") or "") for message in request.messages]
    return sum(_text_tokens(request.model, text) + _TOKENS_OF_A_MESSAGE for text in texts)


def output_limit(parameters: Mapping[str, Any]) -> int | None:
    """Read how many tokens of a reply the parameters of a request allow; None where they set no limit."""
    limits = [value for name in _OUTPUT_LIMITS if isinstance(value := parameters.get(name), int) and value > 0]
    return min(limits) if limits else None


def most_usd(
    request: Request, longest_known: int | None, price: Price | None, provider_counts: float = 1.0
) -> float | None:
    """Estimate what one attempt at the request costs at most, in US dollars; None where the price is not known.

    The reply is taken to be as long as the request allows, or else twice as long as the longest that is known of the
    model. `provider_counts` is how many tokens its provider counts, at most, for each one counted here.
    """
    if request.model.startswith(BASELINE_PREFIX):
        return 0.0
    known = ASSUMED_OUTPUT_TOKENS if longest_known is None else 2 * longest_known
    output = (output_limit(request.parameters) or known) * _replies(request.parameters)
    return cost_usd(request.model, Tokens(input=ceil(input_tokens(request) * provider_counts), output=output), price)


def _replies(parameters: Mapping[str, Any]) -> int:
    """Read how many replies a request asks for, each of which is paid for."""
    return max([1, *(value for name in _REPLIES if isinstance(value := parameters.get(name), int))])


@lru_cache(maxsize=64)  # long prompts that many requests share are counted once
def _text_tokens(model: str, text: str) -> int:
    return int(load().token_counter(model=model, text=text))
