"""Labelling: what a suite asks people about its results. Sheets, forms and agreement with people follow from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

ANSWER = ("sample_hash", "model", "prompt_type", "replicate")
"""What identifies a model's answer in a run, whoever judged it."""

SAMPLE = ("sample_hash",)

YES_NO = ("yes", "no")

LABEL = "label"
"""Who tells what the dataset says of a sample, whatever models answered."""


@dataclass(frozen=True)
class Question:
    """A question to people, as a column of a sheet and a field of a form; every one may be left empty.

    Attributes:
        name: In `human_labels` and in names of metrics.
        title: The question in words.
        answers: The words to choose from; without any, a number from 0 to `most` is asked for.
        near: How far two numbers may be apart that agree; a tenth of `most` where it is None.
        help: What else there is to know.
        column: Of a sheet; its name where it is empty.
        told: By whom the question is answered too, and the answer as an expression over result rows: "judge", "model"
            or LABEL. Agreement with people is measured of each.
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
        """How far numbers may be apart that agree."""
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
        blind: It comes before all lines of stages that are not, so that nothing tells what these show.
        where: Of which answers it is asked.
        each: Gives rows below answers (by `prompt_hash`, `sample_hash`, `replicate`, `judge_hash`), such as findings,
            from the run's tables: it is asked of each one; `claims` are the columns that are shown.
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
        """The columns that are asked for, as a line of a sheet says."""
        return ", ".join(question.heading for question in self.questions)


@dataclass(frozen=True)
class Labelling:
    """How people label a suite's results.

    Attributes:
        suite: The suite.
        stages: What is asked, in order.
        unit: What is drawn. Of several answers that it has, stages about an answer ask about one, drawn at random.
        worth: From a unit's result rows, aggregated: how much rather than others it is drawn.
        counted: Of which result rows people are asked.
        compare: Judges and people side by side (`metrics.decision_agreement.PAIRS`), from the run's tables, where that
            is more than the questions tell; `decisions` are then all that there are.
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
    """Show a column of the result row."""

    def show(seen: Seen) -> str | None:
        value = seen.result[column]
        return value if value is None else str(value)

    return show


def yes_no(condition: pl.Expr) -> pl.Expr:
    """Tell a condition in the words of YES_NO; null where it is unknown."""
    return pl.when(condition).then(pl.lit(YES_NO[0])).when(~condition).then(pl.lit(YES_NO[1]))
