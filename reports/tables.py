"""Every figure as a table: the form that a terminal prints, and that stands under each plot of the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from reports import coverage
from reports.decision import Decision, Verdict
from reports.ranking import Comparison
from reports.report import Report, Subject, Value
from reports.wording import UNKNOWN, interval, number, one_line, visible
from suites.base import figures
from suites.base.figures import Quantity, Unit

Mood: TypeAlias = Literal["", "pass", "fail"]
MOODS: Mapping[Verdict, Mood] = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.UNDECIDED: ""}


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place: text, and where it is a measured value its interval, n and whether it is doubtful."""

    text: str
    interval: str = ""
    n: int | None = None
    doubtful: bool = False
    mood: Mood = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, headings, and rows of cells. The column `key` names its row; the others hold numbers and marks."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    key: int = 0


def measured(value: Value, unit: Unit, *, as_counted: bool = False) -> Cell:
    """Build the cell of a value; of a share, if wanted, with what it is a share of: how many of how many."""
    unit = Unit.SHARE if as_counted else unit
    shown = interval(value.ci_low, value.ci_high, unit, value.value)
    of = f" ({round(value.value * value.n):,}/{value.n:,})" if as_counted and value.value is not None else ""
    return Cell(number(value.value, unit) + of, shown, value.n, value.doubtful)


def coverage_table(report: Report) -> Table:
    """Build the table of what came of the items of every model, judge and dataset."""
    headings, texts = coverage.as_table(report.coverage)
    return Table("Asked and answered", headings, tuple(tuple(map(Cell, row)) for row in texts))


def ranking_table(report: Report, figure: figures.Ranking) -> Table:
    """Build the table of rank, model, verdict against the target, band, and quantities."""
    shown = (figure.quantity, *figure.columns)
    has_bands = any(report.comparisons.values())
    headings = ["#", "model"]
    has_target = report.target is not None and figure is report.ranking
    if has_target:
        sign = "≥" if figure.quantity.higher_is_better else "≤"
        headings.append(f"{sign} {number(report.target, figure.quantity.unit)}")
    if has_bands:
        headings.append("band")

    def row(subject: Subject) -> tuple[Cell, ...]:
        place = report.standings[subject]
        cells = [_or_unknown(place.rank), _name(report, subject)]
        if has_target:
            cells.append(_verdict(report.decision(subject)))
        if has_bands:
            cells.append(_or_unknown(place.band))
        return (*cells, *_values(report, subject, shown))

    return Table(figure.title, (*headings, *_labels(shown)), tuple(map(row, report.subjects)), key=1)


def scatter_table(report: Report, figure: figures.Scatter) -> Table:
    """Build the table of both quantities of every model."""
    return _by_model(report, figure.title, (figure.x, figure.y))


def bars_table(report: Report, figure: figures.Bars) -> Table:
    """Build the table of the quantities of every model."""
    return _by_model(report, figure.title, figure.quantities, as_counted=figure.counted)


def heat_map_table(report: Report, figure: figures.HeatMap) -> Table:
    """Build a table with one column for each value of the slice."""
    parts = report.slice_values(figure.quantity, figure.slice)

    def cell(subject: Subject, part: str) -> Cell:
        value = report.value(subject, figure.quantity, figure.slice, part)
        return measured(value, figure.quantity.unit, as_counted=figure.counted)

    rows = tuple((_name(report, s), *(cell(s, part) for part in parts)) for s in report.subjects)
    return Table(figure.title, ("model", *(one_line(part, 80) for part in parts)), rows)


def reliability_table(report: Report, figure: figures.Reliability) -> Table:
    """Build the table of accuracy in each tenth of stated confidence."""
    return heat_map_table(report, figures.HeatMap(figure.title, figure.accuracy, figure.slice))


def agreement_table(report: Report, figure: figures.AgreementMatrix) -> Table:
    """Build a table with one row for each model and pair of judges."""
    unit = figure.quantity.unit
    rows = tuple(
        (Cell(one_line(subject.model, 300)), *(Cell(one_line(judge, 80)) for judge in pair), measured(value, unit))
        for subject, pairs in report.agreement(figure).items()
        for pair, value in pairs.items()
    )
    return Table(figure.title, ("model", "judge", "other judge", figure.quantity.label), rows)


def by_judge_table(report: Report, figure: figures.ByJudge) -> Table:
    """Build a table with one row for each model and one column for each judge."""
    judges = report.judges(figure.quantity)
    rows = tuple(
        (
            Cell(one_line(model, 300)),
            *(measured(report.value(Subject(model, judge), figure.quantity), figure.quantity.unit) for judge in judges),
        )
        for model in report.models
    )
    return Table(figure.title, ("model", *(one_line(judge or "by rules", 80) for judge in judges)), rows)


def statistics_table(report: Report, figure: figures.Statistics) -> Table:
    """Build a table with one row for each model or judge and one column for each quantity, where they have values."""
    shown = tuple(quantity for quantity in figure.quantities if report.judges(quantity))
    of = [s for s in report.subjects if any(report.value(s, q).value is not None for q in shown)]
    if not figure.by_judge:
        return _by_model(report, figure.title, shown, of)
    first = {subject.judge: subject for subject in reversed(of)}
    rows = tuple(
        (Cell(one_line(judge or "by rules", 300)), *_values(report, first[judge], shown))
        for judge in sorted(first, key=lambda judge: judge or "")
    )
    return Table(figure.title, ("judge", *_labels(shown)), rows)


def decisions_table(report: Report, figure: figures.Decisions) -> Table:
    """Build a table with one row for each decision of each pair of judges and one column for each statistic."""
    pairs = report.slice_values(figure.statistics[0], figure.slice)

    def cell(pair: str, statistic: Quantity, ending: str) -> Cell:
        of_decision = replace(statistic, metric=statistic.metric + ending)
        return measured(report.pooled(of_decision, figure.slice, pair), statistic.unit)

    rows = tuple(
        (Cell(label), *_judges(pair), *(cell(pair, statistic, ending) for statistic in figure.statistics))
        for pair in pairs
        for ending, label in figure.decisions
    )
    return Table(figure.title, ("decision", "judge", "other judge", *_labels(figure.statistics)), rows)


def _judges(pair: str) -> Iterator[Cell]:
    first, _, second = pair.partition("~")
    return (Cell(one_line(judge, 80)) for judge in (first, second))


def comparisons_table(report: Report) -> Table:
    """List every pair of models: the paired difference in the quantity that ranks, its interval, and its p values."""
    quantity = None if report.ranking is None else report.ranking.quantity
    unit = Unit.SCORE if quantity is None else quantity.unit
    rows = [
        (
            Cell(visible(f"{c.first} − {c.second}" if judge is None else f"{c.first} − {c.second} · {judge}")),
            Cell(_difference(c, unit)),
            Cell(f"{c.units:,}"),
            Cell(_p(c.p)),
            Cell(_p(c.p_adjusted)),
        )
        for judge, compared in report.comparisons.items()
        for c in compared
    ]
    headings = ("models", "difference", "units in common", "p", "p, Holm-adjusted")
    named = "" if quantity is None else f" in {quantity.label}"
    return Table(f"Paired differences{named}", headings, tuple(rows))


def _by_model(
    report: Report,
    caption: str,
    quantities: Sequence[Quantity],
    subjects: Sequence[Subject] | None = None,
    *,
    as_counted: bool = False,
) -> Table:
    of = report.subjects if subjects is None else subjects
    rows = tuple((_name(report, each), *_values(report, each, quantities, as_counted=as_counted)) for each in of)
    return Table(caption, ("model", *_labels(quantities)), rows)


def _values(
    report: Report, subject: Subject, quantities: Sequence[Quantity], *, as_counted: bool = False
) -> tuple[Cell, ...]:
    return tuple(measured(report.value(subject, each), each.unit, as_counted=as_counted) for each in quantities)


def _labels(quantities: Sequence[Quantity]) -> tuple[str, ...]:
    return tuple(quantity.label for quantity in quantities)


def _name(report: Report, subject: Subject) -> Cell:
    """Name a row by model and judge; by model alone where all have one judge, whom the headline names."""
    return Cell(one_line(subject.name if report.only_judge is None else subject.model, 300))


def _or_unknown(value: int | None) -> Cell:
    return Cell(UNKNOWN if value is None else str(value))


def _verdict(decision: Decision | None) -> Cell:
    if decision is None:
        return Cell(UNKNOWN)
    return Cell(decision.text, mood=MOODS[decision.verdict])


def _difference(c: Comparison, unit: Unit) -> str:
    """Write a difference with its sign and interval; that of shares in percentage points."""
    if c.difference is None:
        return UNKNOWN
    shown = f"{100 * c.difference:+.1f} pp" if unit is Unit.SHARE else f"{c.difference:+.4g}"
    if c.ci_low is None or c.ci_high is None:
        return shown
    scale, form = (100, "+.1f") if unit is Unit.SHARE else (1, "+.4g")
    return f"{shown} [{scale * c.ci_low:{form}} to {scale * c.ci_high:{form}}]"


def _p(p: float | None) -> str:
    return UNKNOWN if p is None else "< 0.0001" if p < 1e-4 else f"{p:.4f}"
