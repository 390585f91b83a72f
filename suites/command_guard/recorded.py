"""One line of recorded results (`evalake import`) -> the item it is about and the reply that was given."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from core.hashing import content_hash
from suites.base import Item, Recorded, Sample
from suites.base.recorded import Count, RecordedReply, reply_of
from suites.base.validation import ModelName, Name, Strict, read_line
from suites.command_guard.sources.builder import SUITE


class _Line(Strict):
    suite: Literal["command_guard"]
    sample_id: Name
    dataset: Name = "recorded"
    model: ModelName
    replicate: Count = 0
    label: Literal["malicious", "harmless"]
    category: Name | None = None
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


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    read = read_line(_Line, line)
    labels = {"label": read.label, "category": read.category, "cluster": read.cluster}
    sample = Sample(SUITE, read.dataset, read.sample_id, read.command, **labels)
    item = Item(sample, read.model, replicate=read.replicate)
    identity = read.model_dump(include={"suite", "dataset", "sample_id", "model", "command"})
    reply = reply_of({"text": read.response, **read.model_dump(include={*RecordedReply.model_fields})})
    return Recorded(item, (content_hash(identity),), (reply,))
