"""People's answers beside results: how they are joined, and agreement, each weighted by what it stands for.

Of several answers by one person to one question the latest counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from evalake.metrics import agreement
from evalake.metrics.agreement import WEIGHED_PAIRS
from evalake.metrics.columns import STRATUM
from evalake.metrics.compute import Metric, measure
from evalake.metrics.corrected import PPIEstimate, ratio
from evalake.metrics.estimator import Estimator
from evalake.metrics.intervals import Array, Integers
from evalake.sdk.dataset import represented
from evalake.sdk.figures import Quantity, Statistics, Unit

# Labelling: what a suite asks people about its results. Sheets, forms and agreement with people follow from it.


ANSWER = ("sample_hash", "model", "prompt_type", "replicate")
"""The columns that identify a model's answer in a run, for any judge."""

SAMPLE = ("sample_hash",)

YES_NO = ("yes", "no")

LABEL = "label"
"""The key in `Question.told` of the dataset's own label of a sample, for any models' answers."""


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
    def decision(self) -> str:
        """The question's name in words, as tables of agreement have it."""
        return self.name.replace("_", " ")

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
            `judge_hash`), like findings. The questions are asked of each row; its columns `claims` are shown.
        words: What the questions are about, in a sentence.
        imported: Whether its answers come with datasets, so that no sheet or form asks.
    """

    questions: tuple[Question, ...]
    shown: Mapping[str, Callable[[Seen], str | None]]
    about: tuple[str, ...] = ANSWER
    blind: bool = False
    where: Callable[[Seen], bool] = lambda seen: True
    each: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame] | None = None
    claims: tuple[str, ...] = ()
    words: str = ""
    imported: bool = False

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
        compare: From the run's tables -> judges' and people's decisions in pairs (`evalake.metrics.agreement.PAIRS`),
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
    def asked(self) -> tuple[Stage, ...]:
        """The stages about which sheets and forms ask."""
        return tuple(stage for stage in self.stages if not stage.imported)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question that is asked."""
        return tuple(question for stage in self.asked for question in stage.questions)

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


_SOME_TENS = 20
"""The highest point of a scale from which differences are shown with one decimal."""


def with_people(results: pl.LazyFrame, labels: pl.LazyFrame, labelling: Labelling) -> pl.LazyFrame:
    """Add to the result rows people's answers to the questions that the rows themselves answer.

    human_QUESTION         what most people say, or the mean of numbers; null where nobody answered, or there is a tie
    human_weight_QUESTION  how many results the labelled one stands for; null where nobody answered
    human_drawn_QUESTION   whether it was drawn, not picked; null where nobody answered
    """
    unjoined = results  # in every stage: with what others have joined to them, the plan would be many times as large
    for stage, questions in _compared(labelling):
        asked = _asked(labels, unjoined, labelling.suite, stage)
        drawn = asked.group_by(stage.about).agg(human_drawn=pl.col("inclusion_probability").is_not_null().any())
        known = represented(asked, stage.about).join(drawn, on=stage.about)
        for question in questions:
            given = _word(asked.filter(pl.col("question") == question.name), stage, question)
            given = given.join(known, on=stage.about, how="left", maintain_order="left")
            named = given.rename({name: f"{name}_{question.name}" for name in ("human_weight", "human_drawn")})
            results = results.join(named, on=stage.about, how="left", maintain_order="left")
    return results


def _compared(labelling: Labelling) -> Iterator[tuple[Stage, list[Question]]]:
    for stage in labelling.stages:
        questions = [question for question in stage.questions if question.told]
        if questions and stage.each is None:
            yield stage, questions


def _asked(labels: pl.LazyFrame, results: pl.LazyFrame, suite: str, stage: Stage) -> pl.LazyFrame:
    """Select each person's latest answers to a stage's questions about these results."""
    names = [question.name for question in stage.questions]
    ours = labels.filter(pl.col("suite") == suite, pl.col("finding_id").is_null(), pl.col("question").is_in(names))
    ours = ours.join(results.select(stage.about).unique(), on=stage.about, how="semi")
    word = (*stage.about, "annotator", "question")
    return ours.sort("labelled_at", "label_id").unique(word, keep="last", maintain_order=True)


def _word(answers: pl.LazyFrame, stage: Stage, question: Question) -> pl.LazyFrame:
    name = f"human_{question.name}"
    if not question.answers:  # in one order, so that the same answers give the same mean to the last bit
        return answers.group_by(stage.about).agg(pl.col("score").sort().mean().alias(name))
    votes = answers.group_by(*stage.about, "answer").len()
    first = pl.col("answer").filter(pl.col("len") == pl.col("len").max()).sort()
    return votes.group_by(stage.about).agg(pl.when(first.len() == 1).then(first.first()).alias(name))


# Corrections: what people would have said of everything, from those answers and a judge's word on all.


@dataclass(frozen=True)
class Correction:
    """How a rate of what a judge says is corrected.

    Attributes:
        by_people: From the result rows of one model and judge, with people's answers -> the corrected estimate.
        decision: The decision of the suite's calibration that the rate counts; None for no such decision.
        true: The words of that decision that the rate counts.
        judged: Whether a judge saw it, of each row that the rate counts, else null. What none saw is false for certain.
    """

    by_people: Callable[[pl.DataFrame], PPIEstimate | None]
    decision: str | None = None
    true: frozenset[str] = frozenset({"True"})
    judged: pl.Expr = field(default_factory=lambda: pl.lit(value=True))


def by_answers(question: str, judged: pl.Expr, most: float = 1.0) -> Callable[[pl.DataFrame], PPIEstimate | None]:
    """Build the correction of a mean of what a judge says, 0 to `most`, by people's answers on what was drawn."""

    def estimate(rows: pl.DataFrame) -> PPIEstimate | None:
        human = pl.col(f"human_{question}")
        said = human == YES_NO[0] if rows.schema[f"human_{question}"] == pl.String else human / most
        known = rows.filter(judged.is_not_null()).with_columns(
            told=judged.cast(pl.Float64) / most,
            said=said.cast(pl.Float64),
            human_weight=pl.when(f"human_drawn_{question}").then(f"human_weight_{question}"),
        )
        found = powered(known, "told", None, "said")
        scaled = {name: getattr(found, name) * most for name in ("value", "se", "ci_low", "ci_high")} if found else {}
        return None if found is None else replace(found, **scaled)

    return estimate


def powered(judged: pl.DataFrame, judge: str, of: str | None, human: str) -> PPIEstimate | None:
    """Estimate the ratio of what people say to a column, or to the rows, of one model and judge; None with few labels.

    `human_weight` is how many rows a labelled one stands for, null where it was picked, not drawn.
    """
    judged = judged.sort([name for name in ("sample_hash", "prompt_hash", "replicate") if name in judged.columns])
    drawn = pl.col(human).is_not_null() & pl.col("human_weight").is_not_null()
    labelled = judged.select(drawn.arg_true()).to_series()
    if judged.is_empty() or labelled.is_empty():
        return None
    chosen = judged[labelled.to_list()]
    total = judged[judge].is_not_null() if of is None else judged[of]
    return ratio(
        _array(judged[judge]),
        _array(total),
        labelled.to_numpy().astype("int64"),
        _array(chosen[human]),
        _array(chosen["human_weight"]),
        *(_numbers(judged[name]) for name in ("cluster", STRATUM) if name in judged.columns),
    )


def _numbers(values: pl.Series) -> Integers:
    """Assign rows numbers by what they hold, 0 where it is unknown."""
    return values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def _array(values: pl.Series) -> Array:
    return values.cast(pl.Float64).to_numpy()


def people_metrics(labelling: Labelling) -> tuple[Metric, ...]:
    """List the metrics of people's agreement with all who answer the same questions, WHO_human_STATISTIC_QUESTION."""
    return tuple(
        Metric(f"{who}_human_{name}_{question.name}", estimator)
        for _, questions in _compared(labelling)
        for question in questions
        for who, answer in question.told.items()
        for name, estimator in _statistics(question, answer)
    )


def _statistics(question: Question, answer: pl.Expr) -> Iterator[tuple[str, Estimator]]:
    theirs = pl.col(f"human_{question.name}")
    weight = pl.col(f"human_weight_{question.name}")
    if question.answers:
        yield "agreement", agreement.percent_agreement(answer, theirs, weight)
        yield "kappa", agreement.cohen_kappa(answer, theirs, question.answers, weight)
        yield "ac1", agreement.gwet_ac1(answer, theirs, question.answers, weight)
    else:
        near = (answer - theirs).abs() <= question.tolerance
        yield "agreement", agreement.percent_agreement(near, pl.lit(value=True), weight)
        yield "kappa", agreement.quadratic_kappa(answer, theirs, weight)
        yield "difference", agreement.mean_absolute_difference(answer, theirs, weight, most=question.most)


def measure_people(rows: pl.LazyFrame, labelling: Labelling) -> pl.DataFrame:
    """Compute the metrics of people that have answers, in the columns of `evalake.metrics.compute.measure`."""
    answers = [f"human_{question.name}" for _, questions in _compared(labelling) for question in questions]
    known = [name for name in answers if name in rows.collect_schema()]
    if not known or not any(rows.select(pl.col(known).count()).collect().row(0)):
        return measure(rows.clear().collect(), (), cluster="cluster")
    return measure(rows.collect(), people_metrics(labelling), cluster="cluster").filter(pl.col("n") > 0)


def people_figures(labelling: Labelling) -> tuple[Statistics, ...]:
    """Build a table of these metrics for each question; a report leaves out those that nobody answered."""
    return tuple(_figure(question) for _, questions in _compared(labelling) for question in questions)


def _figure(question: Question) -> Statistics:
    units = {"agreement": Unit.SHARE, "difference": Unit.POINTS if question.most >= _SOME_TENS else Unit.SCORE}
    known = (
        Quantity(
            f"{who}_human_{name}_{question.name}", f"{who}: {name.replace('ac1', 'AC1')}", units.get(name, Unit.SCORE)
        )
        for who, answer in question.told.items()
        for name, _ in _statistics(question, answer)
    )
    weighed = "Of all results, from those that were drawn, each of which counts for as many as it stands for."
    return Statistics(f"Agreement with people: {question.decision}", tuple(known), note=weighed)


def decisions(labelling: Labelling) -> tuple[str, ...]:
    """Name the decisions that `pairs_with_people` compares, in the order of the questions."""
    return tuple(question.decision for _, questions in _compared(labelling) for question in questions)


def pairs_with_people(results: pl.DataFrame, labels: pl.DataFrame, labelling: Labelling) -> pl.DataFrame:
    """Pair what judges, models or labels say with what each person says, in the columns of WEIGHED_PAIRS."""
    parts = [pl.DataFrame(schema=WEIGHED_PAIRS)]
    for stage, questions in _compared(labelling):
        asked = _asked(labels.lazy(), results.lazy(), labelling.suite, stage)
        people = asked.join(represented(asked, stage.about), on=stage.about, how="left").collect()
        for question in questions:
            given = people.filter(pl.col("question") == question.name)
            given = given.select(*stage.about, "human_weight", human=pl.col("answer"), human_score=pl.col("score"))
            for who, answer in question.told.items():
                rows = results.sort("model").unique(SAMPLE, keep="first") if who == LABEL else results
                whose: Any = pl.lit(LABEL) if who == LABEL else pl.coalesce("judge", "model")
                rows = rows.select(*stage.about, "cluster", answer=answer, whose=whose)
                parts.append(paired(rows.join(given, on=stage.about), question))
    return pl.concat(parts)


def paired(both: pl.DataFrame, question: Question) -> pl.DataFrame:
    """Pair `answer` with `human`, or with `human_score` where it is a number, in the columns of WEIGHED_PAIRS.

    `whose` names who is compared; `cluster` and `human_weight` are the pair's.
    """
    answer, human, score = pl.col("answer"), pl.col("human"), pl.col("human_score")
    if question.answers:
        told = {"first": answer, "second": human, "agrees": answer == human}
    else:
        near = (answer - score).abs() <= question.tolerance
        told = {"first_score": answer, "second_score": score, "agrees": near}
    known = {"judge": pl.col("whose"), "decision": pl.lit(question.decision), "cluster": pl.col("cluster"), **told}
    known["weight"] = pl.col("human_weight")
    return both.drop_nulls("answer").select(
        known.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in WEIGHED_PAIRS.items()
    )
