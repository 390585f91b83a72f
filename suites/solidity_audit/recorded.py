"""One line of recorded results (`evalake import`) -> the item it is about, and the replies that were given."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from contracts.errors import SourceError
from contracts.hashing import canonical_json, content_hash
from providers.request import Reply
from suites.base import Item, Recorded
from suites.solidity_audit.judgement import Asked, Judgement, read_judgement
from suites.solidity_audit.truth import SUITE, GroundTruth, as_sample
from suites.sources import is_storable, storable

DATASET = "recorded"
"""Lines name no dataset; all samples that were recorded elsewhere belong to this one."""

NO_CONTRACT = ""
"""Nor do they hold the contract: by its absence, scoring knows that the verdict is the judgement's to say."""

_IGNORED = "expected_"

Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class _Claim(_Part):
    type: str | None = None
    severity: str | None = None
    location: str | None = None


class _Prediction(_Part):
    verdict: str | None = None
    confidence: float | None = None
    findings: list[_Claim] = Field(default_factory=list)


class _Line(_Part):
    suite: Literal["solidity_audit"]
    sample_id: Text
    model: Text
    judge: Text
    prompt_type: Text
    replicate: Annotated[int, Field(ge=0, lt=2**63)]
    ground_truth: GroundTruth
    prediction: _Prediction | None = None
    judgement: Judgement | None
    judge_error: Text | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.judgement is None) == (self.judge_error is None):
            raise ValueError("judgement is null exactly when judge_error says why")
        for name in ("sample_id", "model", "judge", "prompt_type"):
            value = getattr(self, name)
            if not (value.strip() and is_storable(value)):
                raise ValueError(f"{name} is blank, or text that cannot be stored (half a surrogate pair, or NUL)")
        if self.judge.startswith("panel:"):
            raise ValueError("judge names a panel: import its judges, and the panel follows from them")
        return self


def asked_of(truth: GroundTruth) -> Asked:
    """What a recorded judgement must hold: a verdict, and of a vulnerable contract the target's assessment."""
    return Asked(target=True if truth.is_vulnerable else None, verdict=True)


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming every field that is unknown, missing, or not what it must be. A judgement that
    contradicts itself is read: what it breaks is for the contract of its row to say.
    """
    try:
        read = _Line.model_validate({key: value for key, value in line.items() if not key.startswith(_IGNORED)})
    except (ValidationError, RecursionError, OverflowError) as error:
        raise SourceError(_explain(error)) from error
    truth = read.ground_truth
    judged = None if read.judgement is None else storable(_as_text(read.judgement))
    if judged is not None and (flaws := read_judgement(judged, asked_of(truth)).flaws):
        raise SourceError(f"judgement: {'; '.join(flaws)}")
    sample = as_sample(DATASET, read.sample_id, NO_CONTRACT, truth, cluster=read.sample_id, note=None)
    subject = {"suite": SUITE, "dataset": DATASET, "sample_id": read.sample_id, "model": read.model}
    subject["prompt_type"] = read.prompt_type
    audit = Reply(None if read.prediction is None else storable(_as_text(read.prediction)))
    verdict = Reply(judged, error_kind=None if read.judge_error is None else storable(read.judge_error))
    return Recorded(
        Item(sample, read.model, read.judge, read.prompt_type, read.replicate),
        (content_hash(subject), content_hash(subject | {"judge": read.judge})),
        (audit, verdict),
    )


def _as_text(part: BaseModel) -> str:
    return canonical_json(part.model_dump()).decode()


def _explain(error: ValidationError | RecursionError | OverflowError) -> str:
    """Every flaw in one line; all unknown fields are named first."""
    if not isinstance(error, ValidationError):
        return "the line is nested too deeply, or holds a number that is too large"
    flaws = error.errors(include_url=False, include_context=False)
    unknown = sorted(repr(".".join(map(str, flaw["loc"]))) for flaw in flaws if flaw["type"] == "extra_forbidden")
    others = [_flaw(flaw) for flaw in flaws if flaw["type"] != "extra_forbidden"]
    return "; ".join([f"unknown field {', '.join(unknown)}"] * bool(unknown) + others[:10])


def _flaw(flaw: Mapping[str, Any]) -> str:
    where, what = ".".join(map(str, flaw["loc"])), str(flaw["msg"]).removeprefix("Value error, ")
    given = flaw["input"]
    named = f", not {ascii(given)[:60]}" if flaw["type"] == "literal_error" and isinstance(given, str) else ""
    return f"{where}: {what}{named}" if where else what
