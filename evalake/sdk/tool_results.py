"""Results of another tool in one shape: what its readers give, and what an import takes in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isclose
from statistics import stdev
from typing import Any

from evalake.models.request import Reply, Request
from evalake.sdk.sample import Skipped

SAME = 1e-9  # relative difference up to which two figures are the same


@dataclass(frozen=True, slots=True)
class Scored:
    """What one scorer said of one answer."""

    scorer: str
    value: Any  # as the tool wrote it
    score: float | None  # the value as a number; None where it is none
    correct: bool | None  # None where the value is no yes or no
    answer: str | None = None  # what the scorer read from the reply
    explanation: str | None = None
    error: str | None = None  # why this scorer gave no score


@dataclass(frozen=True, slots=True)
class WholeCall:
    """A call whose request the tool recorded whole, and its reply."""

    request: Request
    address: str | None  # the base URL that was asked; None for the provider's own
    reply: Reply


@dataclass(frozen=True, slots=True)
class ToolSample:
    """One sample, answered once by one model."""

    sample_id: str
    input: str
    target: Any
    model: str
    messages: Sequence[Mapping[str, Any]]  # the conversation before the last answer, with the calls of tools
    reply: Reply  # the last answer; without text where none came
    scores: Sequence[Scored]
    repeat: int = 0  # from 0
    prompt_variant: str = "direct"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # why there is no answer or no score
    calls: Sequence[WholeCall] = ()


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure that the tool reported, by model and scorer; `ours` is None where the aggregation is not known here."""

    name: str
    said: float
    ours: float | None

    @property
    def agrees(self) -> bool:
        """Whether the recomputed figure is the reported one."""
        return self.ours is not None and isclose(self.said, self.ours, rel_tol=SAME, abs_tol=SAME)


@dataclass(frozen=True, slots=True)
class ToolResults:
    """One file of results, or several that are parts of one evaluation."""

    tool: str  # its name and version
    task: str
    evaluation: str  # the tool's own id of this evaluation, by which two of one task are told apart
    began: str  # ISO 8601 time or another text that sorts by time; empty where it is not known
    task_id: str  # the same in an evaluation and its retries
    dataset: str
    samples: Sequence[ToolSample]
    headlines: Sequence[Headline] = ()
    left_over: Mapping[str, int] = field(default_factory=Counter)  # what has no place here, by kind
    refused: Sequence[Skipped] = ()  # lines that could not be read
    planned: int = 0  # answers that a log which did not end was to have


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with where it comes from, among all that are imported together."""

    sample: ToolSample  # its repeat is that among all evaluations of its task
    results: ToolResults
    evaluation: str  # of those that were merged the first


def by_sample(samples: Sequence[ToolSample], scorer: str) -> dict[str, list[float]]:
    """List the scores that a scorer gave each sample."""
    scores: dict[str, list[float]] = {}
    for sample in samples:
        for each in sample.scores:
            if each.scorer == scorer and each.score is not None:
                scores.setdefault(sample.sample_id, []).append(each.score)
    return scores


def mean(values: Sequence[float]) -> float | None:
    """Compute the mean; None of nothing."""
    return sum(values) / len(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """Compute the standard error of the mean, with n - 1; None of fewer than two values."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def as_score(value: Any) -> float | None:
    """Read a score as a number: a number, yes or no, or a text that is one of them; None where it is none."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        try:
            value = float(word)
        except ValueError:
            return None
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if number - number == 0 else None  # neither infinite nor NaN


_WORDS = {"yes": 1.0, "true": 1.0, "correct": 1.0, "no": 0.0, "false": 0.0, "incorrect": 0.0}


def decide(samples: Sequence[ToolSample]) -> list[ToolSample]:
    """Say right or wrong of each numeric score whose scorer gave nothing but 0 and 1.

    What a scorer of numbers says that is no number is no score: the answer counts as unscored, by its words.
    """
    seen: dict[str, set[float]] = {}
    for sample in samples:
        for each in sample.scores:
            if each.score is not None:
                seen.setdefault(each.scorer, set()).add(each.score)
    binary = {scorer for scorer, values in seen.items() if values <= {0.0, 1.0}}

    def decided(each: Scored) -> Scored:
        if each.correct is not None or each.scorer not in seen:
            return each
        if each.score is None and each.value is not None:
            return replace(each, value=None, explanation=each.explanation or f"{each.value!r} is no number")
        return replace(each, correct=each.score == 1.0) if each.score is not None and each.scorer in binary else each

    return [replace(sample, scores=tuple(map(decided, sample.scores))) for sample in samples]
