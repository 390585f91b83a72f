"""Labelling: what a suite asks people about its results. Sheets, forms and agreement with people follow from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

ANSWER = ("sample_hash", "model", "prompt_type", "replicate")
"""The columns that identify a model's answer in a run, whoever judged it."""

SAMPLE = ("sample_hash",)

YES_NO = ("yes", "no")

LABEL = "label"
"""The key in `Question.told` of the dataset's own label of a sample, whatever models answered."""


@dataclass(frozen=True)
class Question:
    """A question to people, as a column of a sheet and a field of a form; every one may be left empty.

    Attributes:
        name: In `human_labels` and in names of metrics.
        title: The question in words.
        answers: The words to choose from; without any, a number from 0 to `most` is asked for.
        near: How far apart two numbers may be and still agree; a tenth of `most` where it is None.
        help: What else there is to know.
        column: The name of its column in a sheet; its own name where this is empty.
        told: Who else answers the question ("judge", "model" or LABEL) -> the answer as an expression over result
            rows. Agreement with people is measured for each.
    """

    name: str
    title: str
    answers: tuple[str, ...] = ()
    most: float = 1.0
    near: float | None = None
    help: str = ""
    column: str = ""
    told: Mapping[str, pl.Expr] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The question's column in a sheet."""
        return self.column or self.name

    @property
    def tolerance(self) -> float:
        """How far apart two numbers may be and still agree."""
        return self.most / 10 if self.near is None else self.near


@dataclass(frozen=True)
class Seen:
    """What a line of a sheet may show: a result row (of the first judge), its sample, and the model's reply."""

    result: Mapping[str, Any]
    sample: Mapping[str, Any]
    reply: str | None


@dataclass(frozen=True)
class Stage:
    """Questions that are asked together, beside the same texts.

    Attributes:
        questions: What is asked.
        shown: The texts by heading.
        about: What the answers are about: the sample alone, or one model's answer.
        blind: Its lines come before those of all stages that are not blind, so that nobody has seen what these show.
        where: Of which answers it is asked.
        each: From the run's tables -> rows that belong to answers (by `prompt_hash`, `sample_hash`, `replicate`,
            `judge_hash`), such as findings. The questions are asked of each row; its columns `claims` are shown.
        words: What the questions are about, in a sentence.
    """

    questions: tuple[Question, ...]
    shown: Mapping[str, Callable[[Seen], str | None]]
    about: tuple[str, ...] = ANSWER
    blind: bool = False
    where: Callable[[Seen], bool] = lambda seen: True
    each: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame] | None = None
    claims: tuple[str, ...] = ()
    words: str = ""

    @property
    def fill_in(self) -> str:
        """The columns to be filled in, as a line of a sheet names them."""
        return ", ".join(question.heading for question in self.questions)


@dataclass(frozen=True)
class Labelling:
    """How people label a suite's results.

    Attributes:
        suite: The suite.
        stages: What is asked, in order.
        unit: The columns that identify what is drawn. Where a unit has several answers, stages about an answer ask
            about one of them, drawn at random.
        worth: The weight by which a unit is drawn: an expression that aggregates its result rows.
        counted: Which result rows people are asked about.
        compare: From the run's tables -> judges' and people's decisions in pairs (`metrics.decision_agreement.PAIRS`),
            where there are more than those of the questions; `decisions` are then all of them.
    """

    suite: str
    stages: tuple[Stage, ...]
    unit: tuple[str, ...] = SAMPLE
    worth: pl.Expr = field(default_factory=lambda: pl.lit(1.0))
    counted: pl.Expr = field(default_factory=lambda: pl.lit(value=True))
    compare: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame] | None = None
    decisions: Sequence[str] = ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question."""
        return tuple(question for stage in self.stages for question in stage.questions)

    @property
    def material(self) -> tuple[str, ...]:
        """The columns with the texts that a line is about; a form leaves them to its artifact."""
        return tuple(dict.fromkeys(heading for stage in self.stages for heading in stage.shown))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a filled-in sheet that is no label, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Labels:
    """What a filled-in sheet holds: rows of `human_labels`, what was refused, and how many lines nobody filled in."""

    rows: Sequence[Mapping[str, Any]]
    refused: Sequence[Refusal]
    empty: int


def of_result(column: str) -> Callable[[Seen], str | None]:
    """Build a function that shows a column of the result row."""

    def show(seen: Seen) -> str | None:
        value = seen.result[column]
        return value if value is None else str(value)

    return show


def yes_no(condition: pl.Expr) -> pl.Expr:
    """Express a condition in the words of YES_NO; null where it is unknown."""
    return pl.when(condition).then(pl.lit(YES_NO[0])).when(~condition).then(pl.lit(YES_NO[1]))
