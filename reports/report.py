"""A report: one run's metric snapshot, what its suite wants shown of it, and what follows (ranks, mistakes)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from reports.coverage import Coverage
from reports.decision import Decision, decide
from reports.missing import Missing
from reports.ranking import Comparison, Standing, stand
from suites.base.figures import AgreementMatrix, Answers, Decisions, Figure, HeatMap, Quantity, Ranking, Statistics

MISTAKES_SHOWN = 200
"""Mistakes listed per model."""


class Subject(NamedTuple):
    """What is measured: a model, as seen by a judge, a panel, or rules (None)."""

    model: str
    judge: str | None = None

    @property
    def name(self) -> str:
        """The model, and who judged it where somebody did."""
        return self.model if self.judge is None else f"{self.model} · {self.judge}"

    @property
    def brief(self) -> str:
        """The name where there is little room: without leading path parts, and of a panel, how many judges it has."""
        model, judge = (part and part.rsplit("/", 1)[-1] for part in self)
        if self.judge is not None and self.judge.startswith("panel:"):
            by = " (Dawid-Skene)" if self.judge.startswith("panel:dawid_skene:") else ""
            judge = f"panel of {self.judge.count('+') + 1}{by}"
        return f"{model}" if judge is None else f"{model} · {judge}"


@dataclass(frozen=True, slots=True)
class Value:
    """One metric value; None where unknown. A value of fewer than 30 units is not `reliable`."""

    value: float | None = None
    n: int = 0
    ci_low: float | None = None
    ci_high: float | None = None
    reliable: bool = False
    units: int = 0

    @property
    def doubtful(self) -> bool:
        """Whether there is a value that is not reliable."""
        return self.value is not None and not self.reliable


@dataclass(frozen=True)
class Report:
    """What a report is made of; nothing in it is computed twice.

    run, snapshot  their rows of `runs` and `snapshots`
    metrics        the snapshot's rows of `metric_snapshots`; at least model, judge, slice, slice_value, metric, value,
                   n, ci_low, ci_high, reliable
    figures        what the suite wants shown; its first Ranking orders the models everywhere
    target         the value of the ranking's quantity that passes
    comparisons    judge to every pair of its models, compared in the quantity that ranks; without it no rank bands
    trivial        what models that answer every sample alike would get in the quantity that ranks, by name
    answers        which columns of `results` say what was right; without it no mistakes are listed
    missing        what the run lacks of each model, and the bounds of the headline metrics that leaves
    coverage       what came of the items of each model, judge and dataset
    results        the run's rows of the suite's results table; a `judge` column only where the suite has judges
    """

    title: str
    run: Mapping[str, Any]
    snapshot: Mapping[str, Any]
    metrics: pl.DataFrame
    figures: tuple[Figure, ...]
    target: float | None = None
    comparisons: Mapping[str | None, Sequence[Comparison]] = field(default_factory=dict)
    trivial: Mapping[str, float] = field(default_factory=dict)
    answers: Answers | None = None
    missing: Sequence[Missing] = ()
    coverage: Sequence[Coverage] = ()
    results: pl.DataFrame | None = None

    @cached_property
    def shown(self) -> tuple[Figure, ...]:
        """The figures that say something of this run."""
        return tuple(figure for figure in self.figures if self._says_something(figure))

    def _says_something(self, figure: Figure) -> bool:
        match figure:
            case HeatMap(of_several=True):
                return len(self.slice_values(figure.quantity, figure.slice)) > 1
            case Statistics():
                return any(self.judges(quantity) for quantity in figure.quantities)
            case Decisions():
                return bool(self.slice_values(figure.statistics[0], figure.slice))
        return True

    @cached_property
    def ranking(self) -> Ranking | None:
        """The table that orders the models."""
        return next((figure for figure in self.figures if isinstance(figure, Ranking)), None)

    @cached_property
    def standings(self) -> dict[Subject, Standing]:
        """Every model's place, best first; models of different judges are ranked apart."""
        measured = self.metrics.select("model", "judge").unique(maintain_order=True)
        subjects = [Subject(*row) for row in measured.iter_rows()]
        if self.ranking is None:
            return {subject: Standing(subject.model, None, None, None) for subject in subjects}
        quantity = self.ranking.quantity
        placed = {}
        for judge in dict.fromkeys(subject.judge for subject in subjects):
            values = {s.model: self.value(s, quantity).value for s in subjects if s.judge == judge}
            compared = self.comparisons.get(judge, ())
            for standing in stand(values, compared, higher_is_better=quantity.higher_is_better):
                placed[Subject(standing.model, judge)] = standing
        return placed

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything measured, best first."""
        return tuple(self.standings)

    def value(self, subject: Subject, quantity: Quantity, slice_: str = "all", slice_value: str = "") -> Value:
        """Look up the value of a metric; unknown where the snapshot has none."""
        return self._values.get((subject, quantity.metric, slice_, slice_value), Value())

    def slice_values(self, quantity: Quantity, slice_: str) -> list[str]:
        """List the values of a slice for which a metric was measured, in order."""
        rows = self.metrics.filter(pl.col("metric") == quantity.metric, pl.col("slice") == slice_)
        return rows["slice_value"].unique().sort().to_list()

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order of `subjects`."""
        return tuple(dict.fromkeys(subject.model for subject in self.subjects))

    @cached_property
    def only_judge(self) -> str | None:
        """The judge of everything measured; None where there are several, or rules."""
        judges = {subject.judge for subject in self.subjects}
        return next(iter(judges)) if len(judges) == 1 else None

    def judges(self, quantity: Quantity) -> list[str | None]:
        """List the judges by whom the quantity is known of some model, in order of name."""
        known = {s.judge for s in self.subjects if self.value(s, quantity).value is not None}
        return sorted(known, key=lambda judge: judge or "")

    def agreement(self, figure: AgreementMatrix) -> dict[Subject, dict[tuple[str, str], Value]]:
        """Look up each subject's values of the quantity for the pairs of judges that it was measured for."""
        pairs = self.slice_values(figure.quantity, figure.slice)
        values: dict[Subject, dict[tuple[str, str], Value]] = {}
        for subject in self.subjects:
            for pair in pairs:
                key = (subject, figure.quantity.metric, figure.slice, pair)
                if key in self._values:
                    first, _, second = pair.partition("~")
                    values.setdefault(subject, {})[first, second] = self._values[key]
        return values

    def pooled(self, quantity: Quantity, slice_: str, pair: str) -> Value:
        """Look up a quantity of a pair of judges over all models; it stands with each model that they judged."""
        values = (self.value(subject, quantity, slice_, pair) for subject in self.subjects)
        return next((value for value in values if value.n), Value())

    def decision(self, subject: Subject) -> Decision | None:
        """Decide by its interval whether a model reaches the target; None where there is no target or no value."""
        if self.target is None or self.ranking is None:
            return None
        known, upwards = self.value(subject, self.ranking.quantity), self.ranking.quantity.higher_is_better
        if known.value is None:
            return None
        return decide(known.value, known.ci_low, known.ci_high, known.units, self.target, higher_is_better=upwards)

    def mistakes(self) -> Iterator[tuple[Subject, pl.DataFrame]]:
        """Yield each model's wrong answers, in the order of the ranking; models without any are left out."""
        if self.answers is None or self.results is None:
            return
        mistake = ~pl.col(self.answers.correct) if self.answers.mistake is None else self.answers.mistake
        wrong = self.results.filter(mistake).with_columns(self._judge().alias("judge"))
        by_subject = {Subject(*key): part for key, part in wrong.group_by("model", "judge", maintain_order=True)}
        for subject in self.subjects:
            if subject in by_subject:
                yield subject, by_subject[subject].sort(self.answers.sample)

    def _judge(self) -> pl.Expr:
        known = self.results is not None and "judge" in self.results.columns
        return pl.col("judge") if known else pl.lit(None, dtype=pl.String)

    @cached_property
    def _values(self) -> dict[tuple[Subject, str, str, str], Value]:
        return {
            (Subject(row["model"], row["judge"]), row["metric"], row["slice"], row["slice_value"]): Value(
                _finite(row["value"]),
                row["n"],
                _finite(row["ci_low"]),
                _finite(row["ci_high"]),
                row["reliable"],
                row["n"] if row.get("units") is None else row["units"],  # snapshots of before have no units
            )
            for row in self.metrics.iter_rows(named=True)
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
