"""One line of recorded results (`evalake import`) -> the item it is about and the reply that was given."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from contracts.errors import SourceError
from contracts.hashing import content_hash
from providers.request import Reply
from suites.base import Item, Recorded, Sample
from suites.command_guard.harvest import SUITE
from suites.sources import is_storable, storable

_IGNORED = "expected_"

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    suite: Literal["command_guard"]
    sample_id: Text
    dataset: Text
    model: Text
    replicate: Count
    label: Literal["malicious", "harmless"]
    category: Text | None
    command: Text
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
        for name in ("sample_id", "dataset", "model", "category", "command"):
            value = getattr(self, name)
            if value is not None and not (value.strip() and is_storable(value)):
                raise ValueError(f"{name} is blank, or text that cannot be stored (half a surrogate pair, or NUL)")
        return self


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    try:
        read = _Line.model_validate({key: value for key, value in line.items() if not key.startswith(_IGNORED)})
    except ValidationError as error:
        raise SourceError(_explain(error)) from error
    sample = Sample(SUITE, read.dataset, read.sample_id, read.command, label=read.label, category=read.category)
    item = Item(sample, read.model, replicate=read.replicate)
    identity = {
        "suite": SUITE,
        "dataset": read.dataset,
        "sample_id": read.sample_id,
        "model": read.model,
        "command": read.command,
    }
    reply = Reply(
        text=None if read.response is None else storable(read.response),
        finish_reason=None if read.finish_reason is None else storable(read.finish_reason),
        input_tokens=read.input_tokens,
        cached_input_tokens=read.cached_input_tokens,
        output_tokens=read.output_tokens,
        reasoning_tokens=read.reasoning_tokens,
        latency_ms=read.latency_ms,
        error_kind=None if read.error_kind is None else storable(read.error_kind),
    )
    return Recorded(item, (content_hash(identity),), (reply,))


def _explain(error: ValidationError) -> str:
    """Every flaw in one line; all unknown fields are named."""
    flaws = error.errors(include_url=False, include_input=False, include_context=False)
    unknown = sorted(repr(flaw["loc"][0]) for flaw in flaws if flaw["type"] == "extra_forbidden")
    others = [
        f"{'.'.join(map(str, flaw['loc']))}: {flaw['msg']}"
        if flaw["loc"]
        else flaw["msg"].removeprefix("Value error, ")
        for flaw in flaws
        if flaw["type"] != "extra_forbidden"
    ]
    return "; ".join([f"unknown field {', '.join(unknown)}"] * bool(unknown) + others)
