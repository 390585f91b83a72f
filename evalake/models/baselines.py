"""Baselines: rule-based models that run in this process, called like any other and reported beside LLMs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evalake.models.request import Failure, Reply, Request

PROVIDER = "baseline"

Messages = Sequence[Mapping[str, str]]
Baseline = Callable[[Messages], str]
"""The messages of a request -> the text of the reply."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A baseline whose rules changed behind its name. The revision is part of the prompt hash: older replies stay."""

    baseline: Baseline
    revision: str

    def __call__(self, messages: Messages) -> str:
        """Answer by the baseline."""
        return self.baseline(messages)


def revision_of(model: str, baselines: Mapping[str, Baseline]) -> str | None:
    """Look up the revision of a model among some baselines; None for another model, and for a first revision."""
    baseline = baselines.get(model.removeprefix(f"{PROVIDER}/")) if model.startswith(f"{PROVIDER}/") else None
    return baseline.revision if isinstance(baseline, Revised) else None


class BaselineRefusedError(Exception):
    """The messages hold nothing that the baseline could judge."""


async def answer(baseline: Baseline, request: Request) -> Reply | Failure:
    """Answer a request by a baseline: without tokens, cost 0, and without a latency, which would measure this machine.

    Args:
        baseline: The function that answers.
        request: The request to answer.

    Returns:
        The reply, or a failure of the kind bad_request where the baseline refuses the messages.
    """
    await asyncio.sleep(0)  # lets other calls on the same loop go on between two baselines
    try:
        text = baseline(request.messages)
    except BaselineRefusedError as error:
        return Failure("bad_request", str(error), 1)
    return Reply(text, finish_reason="stop", model_reported=request.model, cost_usd=0.0, attempts=1)
