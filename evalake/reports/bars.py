"""Models as horizontal bars with their values, each model's under its name, from best to worst.

What is unknown is said in its bar's place; what is not reliable is hatched.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evalake.reports import axes
from evalake.reports.axes import Drawing, colour
from evalake.reports.report import Report, Subject, Value
from evalake.reports.svg import Bar, Figure, Key, Note
from evalake.reports.wording import UNKNOWN, number, one_line
from evalake.sdk.figures import Bars, ByJudge, ByPart, Decisions, Quantity, Statistics, Unit

BAR = 17
"""Pixels of a bar and the room to the next one."""

MOST_PAIRS = 6
"""So many pairs of judges, or models of one part, are drawn; the table has all."""

ROOM_FOR_TEXT = 1.24
"""How much longer than the longest bar the axis is: values stand to the right of their bars."""


@dataclass(frozen=True, slots=True)
class Series:
    """Bars of one colour: a quantity, and for every row its subject and value."""

    label: str
    colour: str
    quantity: Quantity
    values: Sequence[tuple[Subject, Value]]


def draw_bars(report: Report, figure: Bars) -> Drawing:
    """Draw quantities side by side, or stacked as parts of a whole."""
    subjects, note = report.subjects, ""
    if figure.stacked:
        subjects = tuple(s for s in subjects if any(report.value(s, q).value is not None for q in figure.quantities))
        note = axes.left_out(figure.title.lower(), [s for s in report.subjects if s not in subjects], report.subjects)
    colours = figure.colours or tuple(map(colour, range(len(figure.quantities))))
    series = [
        Series(quantity.label, each, quantity, [(s, report.value(s, quantity)) for s in subjects])
        for quantity, each in zip(figure.quantities, colours, strict=True)
    ]
    alt = f"{', '.join(q.label for q in figure.quantities)}: bars for every model."
    return _drawing(axes.names(subjects), series, alt, note, stacked=figure.stacked)


def draw_by_judge(report: Report, figure: ByJudge) -> Drawing:
    """Draw one quantity of every model, with a bar for each judge."""
    series = []
    for k, judge in enumerate(report.judges(figure.quantity)):
        subjects = [Subject(model, judge) for model in report.models]
        seen = [(subject, report.value(subject, figure.quantity)) for subject in subjects]
        series.append(Series(one_line(judge or "by rules", 80), colour(k), figure.quantity, seen))
    alt = f"{figure.quantity.label} of every model, by judge."
    return _drawing(axes.names([Subject(model) for model in report.models]), series, alt)


def draw_by_part(report: Report, figure: ByPart) -> Drawing:
    """Draw one quantity for each value of a slice, with a bar for each of the best models."""
    quantity, every = figure.quantity, report.slice_values(figure.quantity, figure.slice)
    known_of = {part: [report.value(s, quantity, figure.slice, part).value for s in report.subjects] for part in every}
    parts = [part for part, given in known_of.items() if any(each is not None for each in given)]
    values = {s: [report.value(s, quantity, figure.slice, part) for part in parts] for s in report.subjects}
    known = [subject for subject, given in values.items() if any(each.value is not None for each in given)]
    shown = known[:MOST_PAIRS]
    series = [
        Series(label, colour(k), quantity, [(subject, value) for value in values[subject]])
        for k, (subject, label) in enumerate(zip(shown, axes.names(shown), strict=True))
    ]
    note = (
        f"Drawn: the first {MOST_PAIRS} of {len(known)} models; the table has all." if len(known) > len(shown) else ""
    )
    alt = f"{quantity.label} by {figure.slice.replace('_', ' ')}: a bar for each model."
    return _drawing([one_line(part.replace("_", " "), 80) for part in parts], series, alt, note)


def draw_statistics(report: Report, figure: Statistics) -> Drawing | None:
    """Draw statistics of judges, a bar a judge; None for those of models, which are too many for a drawing."""
    if not figure.by_judge:
        return None
    known = [quantity for quantity in figure.quantities if report.judges(quantity)]
    judges = sorted({judge for quantity in known for judge in report.judges(quantity)}, key=lambda judge: judge or "")
    whose = {subject.judge: subject for subject in reversed(report.subjects)}
    series = [
        Series(quantity.label, colour(k), quantity, [(whose[j], report.value(whose[j], quantity)) for j in judges])
        for k, quantity in enumerate(known)
    ]
    alt = f"{', '.join(quantity.label for quantity in known)} of each judge."
    return _drawing([one_line(judge or "by rules", 80) for judge in judges], series, alt)


def draw_decisions(report: Report, figure: Decisions) -> Drawing:
    """Draw each statistic in a plot of its own: under each decision that has it, a bar for each pair of judges."""
    pairs = report.slice_values(figure.statistics[0], figure.slice)
    shown = pairs[:MOST_PAIRS]
    panels = {each.label: _decided(report, figure, each, shown) for each in figure.statistics}
    known = {label: plot for label, plot in panels.items() if plot is not None}
    notes = [f"Drawn: the first {MOST_PAIRS} of {len(pairs)} pairs of judges."] if len(pairs) > MOST_PAIRS else []
    alt = f"{', '.join(known)} of each pair of judges, decision by decision."
    if not known:
        return Drawing.of(None, alt, [*notes, "unknown for every pair of judges."])
    key = tuple(Key(_pair_name(pair), colour(k)) for k, pair in enumerate(shown)) if len(shown) > 1 else ()
    return Drawing(known, alt, tuple(notes), key=key, wide=True)


def _decided(report: Report, figure: Decisions, statistic: Quantity, pairs: Sequence[str]) -> Figure | None:
    """Draw one statistic of the decisions that have it; None where none has."""
    values = {
        label: [report.pooled(replace(statistic, metric=statistic.metric + ending), figure.slice, p) for p in pairs]
        for ending, label in figure.decisions
    }
    known = {label: of_pairs for label, of_pairs in values.items() if any(v.value is not None for v in of_pairs)}
    if not known:
        return None
    series = [
        Series(_pair_name(p), colour(k), statistic, [(Subject(_pair_name(p)), known[label][k]) for label in known])
        for k, p in enumerate(pairs)
    ]
    return _plot(list(known), series, stacked=False)


def _pair_name(pair: str) -> str:
    return " and ".join(one_line(judge, 80) for judge in pair.split("~", 1))


def _drawing(
    named: Sequence[str], series: Sequence[Series], alt: str, note: str = "", stacked: bool = False
) -> Drawing:
    known = [v.value for each in series for _, v in each.values if v.value is not None]
    if not any(known):
        return Drawing.of(None, alt, [note or f"{'zero' if known else 'unknown'} for every model."])
    key = tuple(Key(each.label, each.colour) for each in series) if len(series) > 1 else ()
    return Drawing.of(_plot(named, series, stacked), alt, [note], key=key)


def _plot(named: Sequence[str], series: Sequence[Series], stacked: bool) -> Figure:
    lines = 2 if stacked else len(series)  # a bar and its parts in figures, or a bar for each
    content = BAR * lines
    directions = {None if each.quantity.best_at_zero else each.quantity.higher_is_better for each in series}
    has_direction = not stacked and len(directions - {None}) == len(directions) == 1
    below = 46 if has_direction else 28
    rows = [[top + BAR * (k + 0.5) for top in axes.row_tops(len(named), content)] for k in range(lines)]
    ends = [_totals(series)] if stacked else [_ends(each) for each in series]
    ends_of_rows = zip(ends, rows[: len(ends)], strict=True)
    y, notes = axes.named_rows(named, content)
    notes += [Note(text, row, at) for some, line in ends_of_rows for (at, text), row in zip(some, line, strict=True)]
    if stacked:
        notes += [Note(text, row) for text, row in zip(_parts(series), rows[1], strict=True)]
    longest = max(end for some in ends for end, _ in some)
    lowest = min((end for each in series for end in _lows(each)), default=0.0)  # of correlations, which may be negative
    quantity = series[0].quantity
    title = axes.better(quantity) if has_direction else ""
    highest = longest * ROOM_FOR_TEXT or lowest * (1 - ROOM_FOR_TEXT)  # every bar may end below zero
    x = axes.quantity_axis(quantity, (min(0.0, lowest), highest), title)
    bars = _bars(series, rows, stacked=stacked)
    return Figure(axes.rows_height(len(named), content) + below, below, x, y, list(bars), notes)


def _bars(series: Sequence[Series], rows: Sequence[Sequence[float]], *, stacked: bool) -> Iterator[Bar]:
    """Yield the bars of each series: with their intervals, or as parts of a whole."""
    starts = [0.0] * len(rows[0])
    for k, each in enumerate(series):
        for i, (subject, shown) in enumerate(each.values):
            value = axes.drawn(shown, each.quantity)
            if value.value is None:
                continue
            start, row = (starts[i], rows[0][i]) if stacked else (0.0, rows[k][i])
            starts[i] += value.value
            tip, ends = axes.hover(subject, [(each.quantity, shown)]), None if stacked else axes.ends(value)
            yield Bar(start, start + value.value, row, BAR - 2, each.colour, tip, value.doubtful, ends)


def _ends(series: Series) -> list[tuple[float, str]]:
    """Compute where each bar and its interval end, and write its value."""
    values = [(value, axes.drawn(value, series.quantity)) for _, value in series.values]
    return [
        (max(0.0, at.value or 0.0, at.ci_high or 0.0), axes.value_text(value, series.quantity)) for value, at in values
    ]


def _lows(series: Series) -> list[float]:
    """Compute the lower end of each bar that is below zero, or of its interval."""
    ends = [axes.drawn(value, series.quantity) for _, value in series.values]
    return [min(at.value or 0.0, at.ci_low or 0.0) for at in ends]


def _totals(series: Sequence[Series]) -> list[tuple[float, str]]:
    """Compute where the stacked bars of each row end, and write their sum: empty for a whole, unknown if a part is."""
    quantity = series[0].quantity
    ends = []
    for parts in zip(*(each.values for each in series), strict=True):
        known = [v.value for _, v in parts if v.value is not None]
        text = number(sum(known), quantity.unit) if len(known) == len(series) else "unknown"
        if math.isclose(sum(known), 1.0):  # a whole, which says nothing
            text = ""
        ends.append((axes.drawn(Value(sum(known)), quantity).value or 0.0, text))
    return ends


def _parts(series: Sequence[Series]) -> list[str]:
    """Write the values of the parts of each row, in the order of the legend; shares in whole percents."""
    percents = series[0].quantity.unit is Unit.SHARE
    rows = []
    for parts in zip(*(each.values for each in series), strict=True):
        if percents:
            shown = [UNKNOWN if v.value is None else f"{100 * v.value:.0f}" for _, v in parts]
        else:
            shown = [number(v.value, series[0].quantity.unit) for _, v in parts]
        rows.append(" · ".join(shown) + " %" * percents)
    return rows
