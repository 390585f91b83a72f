"""One line of recorded results (`evalake import`) -> the item it is about, and the replies that were given."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.metrics.agreement import PANEL
from evalake.models.request import Reply
from evalake.sdk import Item, Recorded
from evalake.sdk.results import ModelName, Name, Strict, read_line
from evalake.sdk.sources import as_json, storable
from evalake.suites.solidity_audit.replies import Asked, Judgement, read_judgement
from evalake.suites.solidity_audit.sources.round_files import stated_failure
from evalake.suites.solidity_audit.truth import MATCHES, SUITE, GroundTruth, as_sample, label_of

DATASET = "recorded"
"""The dataset of all samples that were recorded elsewhere; lines name none."""

NO_CONTRACT = ""
"""The contract of recorded samples: lines hold none, so scoring takes the verdict from the judgement."""


class _Claim(Strict):
    type: str | None = None
    severity: str | None = None
    location: str | None = None


class _Prediction(Strict):
    verdict: str | None = None
    confidence: float | None = None
    findings: list[_Claim] = Field(default_factory=list)


class _Line(Strict):
    suite: Literal["solidity_audit"]
    sample_id: Name
    cluster: Name | None = None
    model: ModelName
    judge: ModelName
    prompt_type: Name
    replicate: Annotated[int, Field(ge=0, lt=2**63)]
    ground_truth: GroundTruth
    prediction: _Prediction | None = None
    judgement: Judgement | None
    judge_error: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.judgement is None) == (self.judge_error is None):
            raise ValueError("judgement is null exactly when judge_error says why")
        if self.judge.startswith(PANEL):
            raise ValueError("judge names a panel: import its judges, and the panel follows from them")
        return self


def asked_of(truth: GroundTruth) -> Asked:
    """State what a recorded judgement must hold: a verdict, and of a vulnerable contract the target's assessment."""
    return Asked(target=True if truth.is_vulnerable else None, verdict=True, recorded=True)


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming every field that is unknown, missing, or not what it must be. A judgement that
    contradicts itself is read: the contract of its row names the rules that it breaks.
    """
    judgement = line.get("judgement")
    if isinstance(judgement, Mapping) and (failure := stated_failure(judgement)) is not None:
        line = {**line, "judgement": None, "judge_error": line.get("judge_error") or failure}
    read = read_line(_Line, line)
    truth = read.ground_truth
    judged = None if read.judgement is None else _as_text(read.judgement)
    if judged is not None and (flaws := read_judgement(judged, asked_of(truth)).flaws):
        raise SourceError(f"judgement: {'; '.join(flaws)}")
    sample = as_sample(DATASET, read.sample_id, NO_CONTRACT, truth, cluster=read.cluster or read.sample_id, note=None)
    item = Item(sample, read.model, read.judge, read.prompt_type, read.replicate)
    audit = Reply(None if read.prediction is None else _as_text(read.prediction))
    verdict = Reply(judged, error_kind=None if read.judge_error is None else storable(read.judge_error))
    return Recorded(item, recorded_hashes(item), (audit, verdict))


def stated_label(line: Mapping[str, Any]) -> str | None:
    """Read the label of a line that may lack anything else; None where its ground truth does not state it."""
    truth = line.get("ground_truth")
    states = truth.get("is_vulnerable") if isinstance(truth, Mapping) else None
    return label_of(states) if isinstance(states, bool) else None


def recorded_hashes(item: Item) -> tuple[str, str]:
    """Compute stand-ins for the prompt hashes of a recorded audit and its judgement, rendered elsewhere."""
    subject = {"suite": SUITE, "dataset": DATASET, "sample_id": item.sample.sample_id, "model": item.model}
    subject["prompt_type"] = item.prompt_type
    return content_hash(subject), content_hash(subject | {"judge": item.judge})


def _as_text(part: BaseModel) -> str:
    return as_json(_as_recorded(part.model_dump()))


_ADDED_LATER = ("description", "type_match_reason", "summary", "notes", "classification_stated", *MATCHES)


def _as_recorded(value: Any) -> Any:
    """Drop unused fields that lines got later, so that what was imported before stays the same."""
    if isinstance(value, dict):
        return {
            name: _as_recorded(part)
            for name, part in value.items()
            if (part is not None or name not in _ADDED_LATER) and (part is not False or name != "unlisted")
        }
    return [_as_recorded(part) for part in value] if isinstance(value, list) else value
