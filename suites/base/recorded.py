"""Recorded results as any suite can import them: a line is a sample, who was asked, and what was answered, in order."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from core.errors import SourceError
from core.hashing import content_hash
from providers.request import Reply
from suites.base.conversation import Item, Recorded
from suites.base.sample import Sample
from suites.base.sources import as_json, storable
from suites.base.validation import ModelName, Name, Strict, read_line

Count = Annotated[int, Field(ge=0, lt=2**63)]


class RecordedReply(Strict):
    """What was recorded of a reply."""

    text: str | None
    finish_reason: str | None = None
    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    latency_ms: Annotated[float, Field(ge=0)] | None = None
    error_kind: str | None = None


class _Line(Strict):
    suite: Name | None = None
    dataset: Name
    sample_id: Name
    input: Name
    target: Any = None
    label: Name | None = None
    category: Name | None = None
    severity: Name | None = None
    difficulty: Name | None = None
    cluster: Name | None = None
    model: ModelName
    judge: ModelName | None = None
    prompt_type: Name = "direct"
    replicate: Count = 0
    replies: Annotated[list[RecordedReply], Field(min_length=1)]


_OF_SAMPLE = ("dataset", "sample_id", "input", "label", "category", "severity", "difficulty", "cluster")


def read_recorded(suite: str, line: Mapping[str, Any], *, is_judged: bool) -> Recorded:
    """Read one decoded line of results. Fields that start with `expected_` are ignored.

    The first of its `replies` is the model's, the others are the judge's.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    read = read_line(_Line, line)
    if is_judged != (read.judge is not None):
        raise SourceError(f"judge: {suite} {'needs one' if is_judged else 'is judged by rules, and has none'}")
    if is_judged and len(read.replies) < 2:
        raise SourceError("replies: the first is the model's, and the judge's are missing")
    target = None if read.target is None else as_json(read.target)
    sample = Sample(suite, **{name: getattr(read, name) for name in _OF_SAMPLE}, target=target)
    item = Item(sample, read.model, read.judge, read.prompt_type, read.replicate)
    asked = [sample.sample_hash, read.model, read.prompt_type]
    hashes = [content_hash([*asked, read.judge if place else None, place]) for place in range(len(read.replies))]
    return Recorded(item, tuple(hashes), tuple(reply_of(each.model_dump()) for each in read.replies))


def reply_of(given: Mapping[str, Any]) -> Reply:
    """Build a reply of its recorded fields, with text that a table can hold."""
    texts = {name: storable(value) for name, value in given.items() if isinstance(value, str)}
    return Reply(**{**given, **texts})
