"""Quantities as colours: models by values of a slice, and judges against judges.

Names of columns stand upright, and texts of cells are left out, where they find no room.
"""

from collections.abc import Iterator, Mapping, Sequence

from evalake.reports import axes
from evalake.reports.axes import BAD_TO_GOOD, LONGEST_TEXT, Drawing
from evalake.reports.report import Report, Subject, Value
from evalake.reports.svg import Axis, Cell, Figure, Key, mixed
from evalake.reports.wording import UNRELIABLE, number, one_line, short_names, visible
from evalake.sdk.figures import AgreementMatrix, HeatMap, Quantity, Unit

CELL = 26
"""Pixels of a cell's height."""

MOST_COLUMNS = 24
"""Of a slice with more values than this, those with the most samples are drawn; the table has all."""

WIDE_FROM = 7
"""Columns from which a heat map takes the whole width of the page."""

LONGEST_HEADING, LONGEST_TITLE = 26, 60


def draw_heat_map(report: Report, figure: HeatMap) -> Drawing:
    """Draw models by values of a slice; models without any are left out."""
    quantity = figure.quantity
    parts, every = _most_sampled(report, figure)
    cells = {s: [report.value(s, quantity, figure.slice, part) for part in parts] for s in report.subjects}
    rows = {s: values for s, values in cells.items() if any(v.value is not None for v in values)}
    by = figure.slice.replace("_", " ")
    alt = f"{quantity.label} by model and {by}."
    if not parts:
        return Drawing.of(None, alt, [f"no {by} stands in these results."])
    notes = [axes.left_out(f"{quantity.label} by {by}", [s for s in cells if s not in rows], report.subjects)]
    if not rows:
        return Drawing.of(None, alt, notes)
    if every > len(parts):
        notes.append(f"Drawn: the {len(parts)} of {every} with the most samples.")
    known = [v.value for values in rows.values() for v in values if v.value is not None]
    ends = (0.0, 1.0) if quantity.unit is Unit.SHARE else (min(known), max(known))
    plot = _plot(axes.names(list(rows)), parts, list(rows.items()), quantity, ends)
    return Drawing.of(plot, alt, notes, key=_scale(quantity, ends), wide=len(parts) >= WIDE_FROM)


def draw_agreement(report: Report, figure: AgreementMatrix) -> Drawing:
    """Draw a matrix of judges by judges for every model."""
    quantity = figure.quantity
    alt = f"{quantity.label} of every pair of judges, one matrix a model."
    agreement = report.agreement(figure)
    if not any(value.value is not None for pairs in agreement.values() for value in pairs.values()):
        return Drawing.of(None, alt, ["there is no pair of judges to compare, or nothing that varies between them."])
    judges = sorted({judge for pairs in agreement.values() for pair in pairs for judge in pair})
    titles = short_names([subject.model for subject in agreement], LONGEST_TITLE)
    panels = {title: _matrix(judges, pairs, quantity) for title, pairs in zip(titles, agreement.values(), strict=True)}
    key = [Key(one_line(judge, 80), letter=str(k)) for k, judge in enumerate(judges, start=1)]
    return Drawing(panels, alt, key=(*key, *_scale(quantity, (0.0, 1.0))), wide=len(panels) > 2)


def _most_sampled(report: Report, figure: HeatMap) -> tuple[list[str], int]:
    """Select the values of the slice with the most samples, which are drawn, in order; and count all values."""
    parts = report.slice_values(figure.quantity, figure.slice)

    def samples(part: str) -> int:
        return sum(report.value(s, figure.quantity, figure.slice, part).n for s in report.subjects)

    chosen = set(sorted(parts, key=samples, reverse=True)[:MOST_COLUMNS])
    return [part for part in parts if part in chosen], len(parts)


def _plot(
    named: Sequence[str],
    parts: Sequence[str],
    rows: Sequence[tuple[Subject, Sequence[Value]]],
    quantity: Quantity,
    ends: tuple[float, float],
) -> Figure:
    cells: list[Cell] = []
    for top, (subject, values) in zip(axes.row_tops(len(rows), CELL), rows, strict=True):
        tips = [axes.hover(subject, [(quantity, v)], part) for part, v in zip(parts, values, strict=True)]
        cells += _cells(top + CELL / 2, values, tips, quantity, ends)
    y, notes = axes.named_rows(named, CELL)
    headings = [visible(heading, LONGEST_TEXT) for heading in short_names(parts, LONGEST_HEADING)]
    return Figure(axes.rows_height(len(rows), CELL) + 8, 8, _columns(headings), y, cells, notes)


def _matrix(judges: Sequence[str], pairs: Mapping[tuple[str, str], Value], quantity: Quantity) -> Figure:
    cells: list[Cell] = []
    for k, a in enumerate(judges):
        values = [pairs.get((a, b)) or pairs.get((b, a)) or Value() for b in judges]
        tips = [
            f"{visible(a, LONGEST_TEXT)} and {visible(b, LONGEST_TEXT)}: {_agreed(v, quantity)}, n = {v.n:,}"
            for b, v in zip(judges, values, strict=True)
        ]
        cells += _cells(k, values, tips, quantity, (0.0, 1.0))
    x = _columns([str(k) for k in range(1, len(judges) + 1)])
    y = Axis((x.reach[1], x.reach[0]), x.ticks, grid=False)
    return Figure((CELL + 2) * len(judges) + 8, 8, x, y, cells)


def _cells(
    row: float, values: Sequence[Value], tips: Sequence[str], quantity: Quantity, ends: tuple[float, float]
) -> Iterator[Cell]:
    """Yield the cells of one row; a colour stands for the place of a value between `ends`."""
    low, high = ends
    colours = _colours(quantity)
    for k, (value, tip) in enumerate(zip(values, tips, strict=True)):
        colour = None
        if value.value is not None:
            at = (value.value - low) / (high - low if high > low else 1.0)
            colour = mixed(colours, min(max(at, 0.0), 1.0))
        yield Cell(k, row, CELL, colour, _short(value, quantity), tip)


def _columns(headings: Sequence[str]) -> Axis:
    return Axis((-0.5, len(headings) - 0.5), list(enumerate(headings)), grid=False)


def _short(value: Value, quantity: Quantity) -> str:
    """Write a cell's text: a share in whole per cent, for there is little room; the table has the decimals."""
    if value.value is None:
        return "·" if value.n else ""
    text = f"{100 * value.value:.0f}%" if quantity.unit is Unit.SHARE else number(value.value, quantity.unit)
    return text + UNRELIABLE * value.doubtful


def _agreed(value: Value, quantity: Quantity) -> str:
    return "no variation" if value.value is None and value.n else axes.value_text(value, quantity)


def _colours(quantity: Quantity) -> list[tuple[float, str]]:
    if quantity.higher_is_better:
        return list(BAD_TO_GOOD)
    return [(1 - at, colour) for at, colour in reversed(BAD_TO_GOOD)]


def _scale(quantity: Quantity, ends: tuple[float, float]) -> tuple[Key, ...]:
    """Build the legend of what the colours stand for."""
    low, high = ends
    marks = [(low + at * (high - low), colour) for at, colour in _colours(quantity)]
    good = high if quantity.higher_is_better else low
    return tuple(Key(number(at, quantity.unit) + " (better)" * (at == good), colour) for at, colour in marks)
