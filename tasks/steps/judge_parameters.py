"""What a judge is asked with: what its suite declares for judges, under what is configured for the model."""

from typing import Any

from core.configuration import Configuration
from providers.parameters import taken
from suites.base import Item, Suite


def judge_parameters(suite: Suite, judge: str, configuration: Configuration) -> dict[str, Any]:
    """List the parameters of the first request to a judge about an item, beside those that the suite's prompt sets."""
    configured = configuration.parameters(judge)
    if not suite.conversation.judge_parameters or not configuration.takes_suite_parameters(judge):
        return configured
    return {**taken(configuration.real_model(judge), suite.conversation.judge_parameters, configured), **configured}


def seeded_once(item: Item, parameters: dict[str, Any]) -> dict[str, Any]:
    """Leave the seed out where a judge is asked again: with the same one, repeats would be copies.

    The first request is the same whether or not repeats follow, so that more repeats never pay for it anew. A
    canary's requests are all repeats: their replicates are numbered by the day.
    """
    return parameters if item.replicate == 0 else {name: v for name, v in parameters.items() if name != "seed"}
