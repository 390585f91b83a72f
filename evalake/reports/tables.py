"""Every figure as a table: the form that a terminal prints, and that stands under each plot of the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import polars as pl
from rich.cells import cell_len, set_cell_size

from evalake.reports import coverage
from evalake.reports.axes import Drawing
from evalake.reports.bars import draw_bars, draw_by_judge, draw_by_part, draw_decisions, draw_statistics
from evalake.reports.heat_maps import draw_agreement, draw_heat_map
from evalake.reports.ranking import Comparison, Verdict
from evalake.reports.report import Report, Subject, Value
from evalake.reports.scatter import draw_reliability, draw_scatter
from evalake.reports.wording import UNKNOWN, UNRELIABLE, interval, number, one_line, short_names, visible
from evalake.sdk import figures
from evalake.sdk.figures import Quantity, Unit

Mood: TypeAlias = Literal["", "pass", "fail"]
MOODS: Mapping[Verdict, Mood] = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.UNDECIDED: ""}


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place: text, and where it is a measured value its interval, n and whether it is doubtful.

    Behind a verdict, the interval is that of the limits that decided.
    """

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
    text = (
        f"{value.value:.0%}"
        if unit is Unit.SHARE and value.n == 1 and value.value in (0, 1)
        else number(value.value, unit)
    )
    return Cell(text + of, shown, value.n, value.doubtful)


def coverage_table(report: Report) -> Table:
    """Build the table of what came of the items of every model, judge and dataset."""
    headings, texts = coverage.as_table(report.coverage)
    return Table("Asked and answered", headings, tuple(tuple(map(Cell, row)) for row in texts))


def ranking_table(report: Report, figure: figures.Ranking) -> Table:
    """Build the table of rank, model, verdict against the target, letters, units of what ranks, and quantities."""
    shown = (figure.quantity, *figure.columns)
    has_letters = any(report.comparisons.values())
    headings = ["#", "model"]
    has_target = report.target is not None and figure is report.ranking
    if has_target:
        sign = "≥" if figure.quantity.higher_is_better else "≤"
        headings.append(f"{sign} {number(report.target, figure.quantity.unit)}")
    if has_letters:
        headings.append("letters")
    headings.append("units")

    def row(subject: Subject) -> tuple[Cell, ...]:
        place = report.standings[subject]
        cells = [Cell(UNKNOWN if place.rank is None else str(place.rank)), _name(report, subject)]
        if has_target:
            cells.append(_verdict(report, subject, figure.quantity))
        if has_letters:
            cells.append(Cell(place.letters or UNKNOWN))
        ranked = report.value(subject, figure.quantity)
        cells.append(Cell(UNKNOWN if ranked.value is None else f"{ranked.units:,}"))
        return (*cells, *_values(report, subject, shown))

    return Table(figure.title, (*headings, *_labels(shown)), tuple(map(row, report.subjects)), key=1)


def scatter_table(report: Report, figure: figures.Scatter) -> Table:
    """Build the table of both quantities of every model."""
    return _by_model(report, figure.title, (figure.x, figure.y))


def bars_table(report: Report, figure: figures.Bars) -> Table:
    """Build the table of the quantities of every model."""
    return _by_model(report, figure.title, figure.quantities, as_counted=figure.counted)


def heat_map_table(report: Report, figure: figures.HeatMap | figures.ByPart) -> Table:
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
    """Name a row by model and judge, by model alone where all have one judge; and say how much is missing, by kind."""
    name = one_line(subject.name if report.only_judge is None else subject.model, 300)
    lacking = report.lacking(subject)
    return Cell(name if lacking is None else f"{name} ({lacking.share})")


def _verdict(report: Report, subject: Subject, quantity: Quantity) -> Cell:
    """Write the verdict, with the limits that decided where the interval beside it is another."""
    decision, limits = report.decision(subject), report.limits.get(subject)
    if decision is None:
        return Cell(UNKNOWN)
    value = report.value(subject, quantity)
    shown = interval(value.ci_low, value.ci_high, quantity.unit, value.value)
    decided = "" if limits is None else interval(*limits.whatever, quantity.unit, value.value)
    by = f"by {decided}" if decided not in ("", shown) else ""
    return Cell(decision.text, by, mood=MOODS[decision.verdict])


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


# Metric values as lines for a terminal: a block for each metric and slice, headline metrics first.


GAP = 2
COLUMNS = {"value": 9, "95 % interval": 17, "n": 7, "units": 7}
"""The headings of the numbers behind a name, and how wide they are."""

NUMBERS = sum(COLUMNS.values()) + GAP * len(COLUMNS)


def headline_first(values: pl.DataFrame, headline: Sequence[str]) -> pl.DataFrame:
    """Order rows of `metric_snapshots` by the headline, then by tier and name; slices behind the whole."""
    place = {name: number for number, name in enumerate(headline)}
    order = pl.col("metric").replace_strict(place, default=len(place), return_dtype=pl.Int64)
    sliced = pl.col("slice") != "all"
    return values.sort(order, "tier", "metric", sliced, "slice", "slice_value", nulls_last=True, maintain_order=True)


def value_lines(values: pl.DataFrame, width: int) -> Iterator[str]:
    """Write rows of `metric_snapshots` as lines of at most `width` cells, in their order.

    There is a line for each model and judge. Where all rows are of one of them, it is named once.
    """
    if values.is_empty():
        return
    judges = values["judge"].unique()
    if judges.len() == 1 and judges[0] is not None:
        yield _cut(f"judge {judges[0]}", width)
        values = values.with_columns(judge=pl.lit(None, pl.String))
    subjects = [Subject(*row).name for row in values.select("model", "judge").unique().iter_rows()]
    alone = len(subjects) == 1
    if alone:
        yield _cut(f"model {subjects[0]}", width)
    names = [*values["slice_value"].unique(), *(values["metric"].unique() if alone else subjects)]
    room = min(max(map(cell_len, names)) + 4, width - NUMBERS)
    yield ""
    yield " " * room + "".join(f"{heading:>{GAP + size}}" for heading, size in COLUMNS.items())
    for (metric, slice_), rows in values.group_by("metric", "slice", maintain_order=True):
        if slice_ == "all":
            yield from _block(str(metric), "  ", rows, room, width, alone=alone)
            continue
        yield f"{metric} by {slice_}"
        for (part,), of_part in rows.group_by("slice_value", maintain_order=True):
            yield from _block(_cut(f"  {part}", width), "    ", of_part, room, width, alone=alone)


def _block(heading: str, indent: str, rows: pl.DataFrame, room: int, width: int, *, alone: bool) -> Iterator[str]:
    """Write rows under a heading, each with its model and judge; behind the heading where all are of one of them."""
    if not alone:
        yield heading
    for row in rows.iter_rows(named=True):
        yield _line(heading if alone else f"{indent}{Subject(row['model'], row['judge']).name}", row, room, width)


def _line(name: str, row: Mapping[str, Any], room: int, width: int) -> str:
    """Write a name with the numbers behind it, or below it where it is longer than there is room."""
    shown = _cut(name, width)
    if cell_len(shown) > room:
        return f"{shown}\n{'':<{room}}{_numbers(row)}"
    return f"{set_cell_size(shown, room)}{_numbers(row)}"


def _cut(text: str, width: int) -> str:
    bare = text.lstrip(" ")
    indent = len(text) - len(bare)
    return " " * indent + short_names([one_line(bare, 300)], width - indent)[0]


def _numbers(row: Mapping[str, Any]) -> str:
    value = _number(row["value"], row["value"], whole=row["se"] is None or row["n"] == 1)
    value += " " if row["value"] is None or row["reliable"] else UNRELIABLE
    known = row["ci_low"] is not None and row["ci_high"] is not None
    interval = f"[{_number(row['ci_low'], row['value'])} {_number(row['ci_high'], row['value'])}]" if known else ""
    units = "" if row["units"] is None else f"{row['units']:,}"
    cells = zip((value, interval, f"{row['n']:,}", units), COLUMNS.values(), strict=True)
    return "".join(f"{cell:>{GAP + size}}" for cell, size in cells).rstrip()


def _number(value: float | None, like: float | None, *, whole: bool = False) -> str:
    """Write a number with as many decimals as one of the size of `like` has, or none where `whole`."""
    if value is None or value - value != 0:
        return UNKNOWN
    if whole and value == round(value):
        return f"{value:,.0f}"
    size = abs(value if like is None else like)
    if size >= 1e7:
        return f"{value:.3g}"
    return f"{value:,.{3 if size < 10 else 1 if size < 1e4 and size != round(size) else 0}f}"


# Every kind of figure that a suite may declare: how it is tabulated, and how it is drawn where it is a plot.


@dataclass(frozen=True, slots=True)
class Kind:
    """`tabulate` and `draw` take the report and the figure; `draw` is, or gives, None for a table."""

    tabulate: Callable[[Report, Any], Table]
    draw: Callable[[Report, Any], Drawing | None] | None = None
    terminal: Literal["no", "values", "intervals"] = "values"  # what of it a terminal shows


KINDS: Mapping[type, Kind] = {
    figures.Ranking: Kind(ranking_table, terminal="intervals"),
    figures.Scatter: Kind(scatter_table, draw_scatter, terminal="no"),
    figures.Bars: Kind(bars_table, draw_bars),
    figures.HeatMap: Kind(heat_map_table, draw_heat_map),
    figures.ByPart: Kind(heat_map_table, draw_by_part),
    figures.Reliability: Kind(reliability_table, draw_reliability),
    figures.AgreementMatrix: Kind(agreement_table, draw_agreement),
    figures.ByJudge: Kind(by_judge_table, draw_by_judge),
    figures.Statistics: Kind(statistics_table, draw_statistics),
    figures.Decisions: Kind(decisions_table, draw_decisions),
}
