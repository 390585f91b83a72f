"""Figures as Plotly drawings; colours of text, grid and ground are the page's style sheet's, light or dark.

What is unknown is left out of a drawing and named in its notes; what is not reliable is drawn hollow or hatched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.axes import (
    MUTED,
    drawn,
    error_bars,
    hover,
    layout,
    left_out,
    names,
    positions,
    quantity_axis,
    reach_of,
    rows_axis,
    safe,
)
from reports.labels import place_labels
from reports.report import Report, Value
from reports.wording import UNKNOWN, UNRELIABLE, number, short_names
from suites.figures import Bars, HeatMap, Quantity, Scatter, Unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

ACCENT, TARGET = "#3b82c4", "#4a9d5b"
COLOURS = (ACCENT, "#d07a1f", TARGET, "#a06cc0", "#cf4f4f", "#8a7a5a", "#2f9fa3", "#c9a227", "#d27ba6", "#7d838c")
"""Enough for every class of a whole to have one of its own."""

HATCHED = "/"
BAD_TO_GOOD = ((0.0, "#c8641f"), (0.5, "#efe9df"), (1.0, "#2a6fb5"))

NAMED_UP_TO = 8
"""With more models than this, points bear ranks in place of names."""

WIDE_FROM = 8
"""A heat map with more columns than this takes the whole width."""

LONG_SCALE = 20.0
"""Quotient of largest and smallest value from which an axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A Plotly figure (None where there is nothing to draw), what it shows in words, and what to know of it."""

    figure: "go.Figure | None"
    alt: str
    notes: tuple[str, ...] = ()
    least_width: int = 0  # pixels; narrower pages scroll
    wide: bool = False


def draw_scatter(report: Report, figure: Scatter) -> Drawing:
    """One point a model, with intervals; the Pareto line and the target where they apply."""
    import plotly.graph_objects as go

    points = [(s, report.value(s, figure.x), report.value(s, figure.y)) for s in report.subjects]
    known = [(s, x, y) for s, x, y in points if x.value is not None and y.value is not None]
    notes = [
        left_out(figure.x.label, [s for s, x, _ in points if x.value is None]),
        left_out(figure.y.label, [s for s, _, y in points if y.value is None]),
    ]
    alt = f"{figure.y.label} against {figure.x.label}, one point a model."
    if not known:
        return Drawing(None, alt, _said(notes))
    x_values = [drawn(x, figure.x) for _, x, _ in known]
    y_values = [drawn(y, figure.y) for _, _, y in known]
    xs, ys = _numbers(x_values), _numbers(y_values)
    logarithmic = figure.x.unit is not Unit.SHARE and min(xs) > 0 and max(xs) / min(xs) > LONG_SCALE
    x_reach = reach_of(figure.x, x_values, logarithmic=logarithmic)
    headline = report.ranking is not None and figure.y == report.ranking.quantity
    y_reach = reach_of(figure.y, y_values, also=report.target if headline else None)

    plot = go.Figure(layout=layout(400) | {"showlegend": False})
    plot.update_xaxes(**quantity_axis(figure.x, x_reach, logarithmic=logarithmic))
    plot.update_yaxes(**quantity_axis(figure.y, y_reach))
    notes.append(_add_target(plot, report, figure))
    on_line = set(range(len(known)))
    if figure.pareto:
        frontier = pareto(xs, ys, figure.x.higher_is_better, figure.y.higher_is_better)
        on_line = set(frontier)
        line = {"color": ACCENT, "width": 1.5, "dash": "dot"}
        path = {"x": [xs[i] for i in frontier], "y": [ys[i] for i in frontier]}
        plot.add_scatter(**path, mode="lines", line=line, hoverinfo="skip")
        notes.append("Dotted: the Pareto line, models that no other beats in both.")
    numbered = len(known) > NAMED_UP_TO
    if numbered:
        labels, places = [str(report.standings[s].rank or UNKNOWN) for s, *_ in known], ["middle center"] * len(known)
        notes.append("Numbers are ranks in the ranking table.")
    else:
        labels = names([s for s, *_ in known])
        at = zip(positions(xs, x_reach, logarithmic=logarithmic), positions(ys, y_reach), strict=True)
        places = place_labels(list(at), [len(label) for label in labels])
    plot.add_scatter(
        x=xs,
        y=ys,
        mode="markers+text",
        text=[safe(label) for label in labels],
        textposition=places,
        textfont={"size": 11},
        marker={
            "size": 22 if numbered else 11,
            "symbol": ["circle-open" if x.doubtful or y.doubtful else "circle" for _, x, y in known],
            "color": [ACCENT if i in on_line else MUTED for i in range(len(known))],
            "opacity": 0.4 if numbered else 1.0,
            "line": {"width": 2, "color": [ACCENT if i in on_line else MUTED for i in range(len(known))]},
        },
        error_x=None if numbered else error_bars(x_values),
        error_y=None if numbered else error_bars(y_values),
        hoverinfo="text",
        hovertext=[hover(s, ((figure.x, x), (figure.y, y))) for s, x, y in known],
    )
    return Drawing(plot, alt, _said(notes))


def draw_bars(report: Report, figure: Bars) -> Drawing:
    """Horizontal bars with their values, models from best to worst."""
    import plotly.graph_objects as go

    quantities, subjects, notes = figure.quantities, report.subjects, []
    if figure.stacked:
        parts = {s: [report.value(s, quantity).value for quantity in quantities] for s in subjects}
        subjects = tuple(s for s in subjects if any(part is not None for part in parts[s]))
        notes = [left_out(figure.title.lower(), [s for s in parts if s not in subjects])]
    table = [[report.value(s, quantity) for s in subjects] for quantity in quantities]
    alt = f"{', '.join(q.label for q in quantities)}: bars for every model."
    known = [v.value for values in table for v in values if v.value is not None]
    if not any(known):
        return Drawing(None, alt, ("Zero for every model." if known else "Unknown for every model.",))
    side_by_side = 1 if figure.stacked else len(quantities)
    thickness = 0.8 / side_by_side
    several = len(quantities) > 1
    plot = go.Figure(layout=layout(60 + max(34, 17 * side_by_side + 10) * len(subjects) + 40 * several))
    for k, (quantity, values) in enumerate(zip(quantities, table, strict=True)):
        scaled = [drawn(v, quantity) for v in values]
        rows = [i + (0 if figure.stacked else (k - (side_by_side - 1) / 2) * thickness) for i in range(len(subjects))]
        plot.add_bar(
            orientation="h",
            y=rows,
            x=[v.value for v in scaled],
            width=thickness * 0.88,
            name=safe(quantity.label),
            marker={"color": COLOURS[k % len(COLOURS)], "pattern": {"shape": [HATCHED * v.doubtful for v in values]}},
            error_x=None if figure.stacked else error_bars(scaled),
            hoverinfo="text",
            hovertext=[hover(s, [(quantity, v)]) for s, v in zip(subjects, values, strict=True)],
            showlegend=several,
        )
        if not figure.stacked:
            _add_values(plot, rows, [v.ci_high or v.value for v in scaled], [_text(v, quantity) for v in values])
    ends = [end for values in table for v in values for end in (v.value, v.ci_high) if end is not None]
    if figure.stacked:
        totals = _totals(table)
        unit = quantities[0].unit
        _add_values(plot, range(len(subjects)), totals, ["unknown" if t is None else number(t, unit) for t in totals])
        ends = [t for t in totals if t is not None] or ends
    longest = drawn(Value(max(ends)), quantities[0]).value or 0.0
    plot.update_layout(barmode="stack" if figure.stacked else "overlay")
    plot.update_xaxes(**quantity_axis(quantities[0], (0.0, longest * 1.22)) | {"title": None})
    plot.update_yaxes(**rows_axis(subjects))
    return Drawing(plot, alt, _said(notes))


def draw_heat_map(report: Report, figure: HeatMap) -> Drawing:
    """Models by values of a slice; models without any are left out."""
    import plotly.graph_objects as go

    quantity, parts = figure.quantity, report.slice_values(figure.quantity, figure.slice)
    every = {s: [report.value(s, quantity, figure.slice, part) for part in parts] for s in report.subjects}
    rows = {s: cells for s, cells in every.items() if any(cell.value is not None for cell in cells)}
    alt = f"{quantity.label} by model and {figure.slice}."
    notes = _said([left_out(f"{quantity.label} by {figure.slice}", [s for s in every if s not in rows])])
    if not rows:
        return Drawing(None, alt, notes)
    known = [cell.value for cells in rows.values() for cell in cells if cell.value is not None]
    low, high = (0.0, 1.0) if quantity.unit is Unit.SHARE else (min(known), max(known))
    scale = BAD_TO_GOOD if quantity.higher_is_better else [(1 - at, colour) for at, colour in reversed(BAD_TO_GOOD)]
    plot = go.Figure(layout=layout(90 + 30 * len(rows)))
    plot.add_heatmap(
        z=[[cell.value for cell in cells] for cells in rows.values()],
        x=list(range(len(parts))),
        y=list(range(len(rows))),
        zmin=low,
        zmax=high,
        colorscale=scale,
        showscale=False,
        xgap=2,
        ygap=2,
        text=[[_text(cell, quantity) if cell.value is not None else "" for cell in cells] for cells in rows.values()],
        texttemplate="%{text}",
        textfont={"size": 11},
        hoverinfo="text",
        hovertext=[
            [hover(s, [(quantity, cell)], part) for part, cell in zip(parts, cells, strict=True)]
            for s, cells in rows.items()
        ],
    )
    empty = [(x, y) for y, cells in enumerate(rows.values()) for x, cell in enumerate(cells) if cell.value is None]
    plot.update_layout(annotations=[{"x": x, "y": y, "text": UNKNOWN, "showarrow": False} for x, y in empty])
    plot.update_xaxes(
        tickvals=list(range(len(parts))),
        ticktext=[safe(name) for name in short_names(parts, 18)],
        side="top",
        fixedrange=True,
        showgrid=False,
        zeroline=False,
        automargin=True,
    )
    plot.update_yaxes(**rows_axis(list(rows)))
    return Drawing(plot, alt, notes, least_width=180 + 54 * len(parts), wide=len(parts) > WIDE_FROM)


def pareto(xs: Sequence[float], ys: Sequence[float], x_up: bool, y_up: bool) -> list[int]:
    """Indices, by x, of the points that no other beats: at least as good in both, and better in one."""
    goods = [(x if x_up else -x, y if y_up else -y) for x, y in zip(xs, ys, strict=True)]
    beaten = {i for i, a in enumerate(goods) for b in goods if b != a and b[0] >= a[0] and b[1] >= a[1]}
    return sorted((i for i in range(len(goods)) if i not in beaten), key=lambda i: (xs[i], ys[i]))


def _add_target(plot: "go.Figure", report: Report, figure: Scatter) -> str:
    """Mark the target; returns what the mark means, or nothing where there is none."""
    if report.target is None or report.ranking is None:
        return ""
    line = {"color": TARGET, "width": 1.5, "dash": "dash"}
    wanted = f"{report.ranking.quantity.label} of {number(report.target, report.ranking.quantity.unit)} or better"
    if figure.target_zone:
        corner = 2 * report.target - 1  # where the mean of x and y is the target, and one of them is 1
        path = f"M {corner},1 L 1,{corner} L 1,1 Z"
        plot.add_shape(type="path", path=path, fillcolor=TARGET, opacity=0.22, line=line, layer="below")
        return f"Shaded: {wanted}."
    if figure.y == report.ranking.quantity:
        plot.add_hline(y=report.target, line=line)
        return f"Dashed: the target, {wanted}."
    return ""


def _add_values(plot: "go.Figure", rows: Sequence[float], ends: Sequence[float | None], texts: Sequence[str]) -> None:
    """What bars come to, to the right of them and their intervals."""
    plot.add_scatter(
        y=list(rows),
        x=[end or 0.0 for end in ends],
        mode="text",
        text=[f"  {text}" for text in texts],
        textposition="middle right",
        textfont={"size": 11},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def _text(value: Value, quantity: Quantity) -> str:
    return "unknown" if value.value is None else number(value.value, quantity.unit) + UNRELIABLE * value.doubtful


def _totals(table: Sequence[Sequence[Value]]) -> list[float | None]:
    """The sum of each model's values; None where one is unknown."""
    columns = [[v.value for v in values] for values in zip(*table, strict=True)]
    return [None if None in column else sum(v for v in column if v is not None) for column in columns]


def _numbers(values: Sequence[Value]) -> list[float]:
    return [v.value for v in values if v.value is not None]


def _said(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for note in notes if note))
