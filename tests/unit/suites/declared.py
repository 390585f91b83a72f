"""What a suite declares, looked at as data: the quantities of its figures, and conversations by its own baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from evalake.models.request import Reply
from evalake.sdk import Exchange, Item, Sample, Suite
from evalake.sdk.figures import Decisions, Figure, Quantity


def quantities(figure: Figure) -> Iterator[Quantity]:
    """Every quantity of a figure, whichever field it is in."""
    for name in (field.name for field in fields(figure)):
        value: Any = getattr(figure, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Quantity):
                yield each


def metrics_named(figures: Sequence[Figure]) -> set[str]:
    """The metrics that figures name, but for those of decisions."""
    return {each.metric for figure in figures if not isinstance(figure, Decisions) for each in quantities(figure)}


def converse_with_baselines(suite: Suite, sample: Sample, model: str, judge: str | None) -> tuple[Item, list[Exchange]]:
    """The conversation about a sample, answered by the suite's own baselines, to its end."""
    item = Item(sample, model, judge)
    answered: list[Exchange] = []
    while (request := suite.conversation.next_request(item, answered, suite.options)) is not None:
        baseline = suite.conversation.baselines[request.model.removeprefix("baseline/")]
        answered.append(Exchange(request.prompt_hash, Reply(baseline(request.messages))))
    return item, answered
