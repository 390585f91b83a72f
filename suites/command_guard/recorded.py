"""One line of recorded results (`evalake import`) -> the item it is about and the reply that was given."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from core.hashing import content_hash
from providers.request import Reply
from suites.base import Item, Recorded, Sample
from suites.base.sources import storable
from suites.base.validation import ModelName, Name, Strict, read_line
from suites.command_guard.sources.builder import SUITE

Count = Annotated[int, Field(ge=0, lt=2**63)]
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")


class _Line(Strict):
    suite: Literal["command_guard"]
    sample_id: Name
    dataset: Name
    model: ModelName
    replicate: Count
    label: Literal["malicious", "harmless"]
    category: Name | None
    command: Name
    cluster: Name | None = None
    response: str | None
    finish_reason: str | None = None
    error_kind: str | None = None
    latency_ms: Annotated[float, Field(ge=0)] | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    reasoning_tokens: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.category is None) != (self.label == "harmless"):
            raise ValueError("a malicious command has a category, and a harmless one has null")
        return self


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    read = read_line(_Line, line)
    labels = {"label": read.label, "category": read.category, "cluster": read.cluster}
    sample = Sample(SUITE, read.dataset, read.sample_id, read.command, **labels)
    item = Item(sample, read.model, replicate=read.replicate)
    identity = read.model_dump(include={"suite", "dataset", "sample_id", "model", "command"})
    reply = Reply(
        text=None if read.response is None else storable(read.response),
        finish_reason=None if read.finish_reason is None else storable(read.finish_reason),
        error_kind=None if read.error_kind is None else storable(read.error_kind),
        **read.model_dump(include={"latency_ms", *TOKENS}),
    )
    return Recorded(item, (content_hash(identity),), (reply,))
