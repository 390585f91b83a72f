"""Baselines: rule-based models in this process, which are called and reported like LLMs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evalake.models.request import Failure, Reply, Request

PROVIDER = "baseline"

Messages = Sequence[Mapping[str, str]]
Baseline = Callable[[Messages], str]
"""Maps the messages of a request to the text of a reply."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A baseline whose rules have changed. The revision is part of the prompt hash, so that older replies stay."""

    baseline: Baseline
    revision: str

    def __call__(self, messages: Messages) -> str:
        """Answer by the baseline."""
        return self.baseline(messages)


def revision_of(model: str, baselines: Mapping[str, Baseline]) -> str | None:
    """Look up the revision of a baseline; None for its first revision and for other models."""
    baseline = baselines.get(model.removeprefix(f"{PROVIDER}/")) if model.startswith(f"{PROVIDER}/") else None
    return baseline.revision if isinstance(baseline, Revised) else None


class BaselineRefusedError(Exception):
    """The baseline cannot judge these messages."""


async def answer(baseline: Baseline, request: Request) -> Reply | Failure:
    """Answer a request by a baseline, at cost 0, without tokens and latency.

    Returns a failure of kind bad_request where the baseline refuses the messages.
    """
    await asyncio.sleep(0)  # lets other calls run
    try:
        text = baseline(request.messages)
    except BaselineRefusedError as error:
        return Failure("bad_request", str(error), 1)
    return Reply(text, finish_reason="stop", model_reported=request.model, cost_usd=0.0, attempts=1)
