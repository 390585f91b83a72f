"""Models as points: one quantity against another, with the Pareto line and the target where they apply.

What is unknown is left out and named in the notes; what is not reliable is drawn hollow.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from reports import axes
from reports.drawing import ACCENT, GREEN, MUTED, Drawing, Key
from reports.labels import place_labels
from reports.report import Report, Subject, Value
from reports.wording import number, one_line, short_names
from suites.base.figures import Scatter, Unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

INTERVALS_UP_TO = 8
"""With more models than this, the bars of their intervals would hide the points."""

LONG_SCALE = 20.0
"""Quotient of largest and smallest value from which an axis is logarithmic."""

Point = tuple[Subject, Value, Value]
Reach = tuple[float, float]


def draw_scatter(report: Report, figure: Scatter) -> Drawing:
    """Draw one point a model, with intervals."""
    import plotly.graph_objects as go

    points = [(s, report.value(s, figure.x), report.value(s, figure.y)) for s in report.subjects]
    whole = [(s, x, y) for s, x, y in points if None not in (x.value, y.value)]
    known = [(s, axes.drawn(x, figure.x), axes.drawn(y, figure.y)) for s, x, y in whole]
    notes = [
        axes.left_out(figure.x.label, [s for s, x, _ in points if x.value is None], report.subjects),
        axes.left_out(figure.y.label, [s for s, _, y in points if y.value is None], report.subjects),
    ]
    alt = f"{figure.y.label} against {figure.x.label}, one point a model."
    if not known:
        return Drawing.of(None, alt, notes)
    xs, ys = _numbers(x for _, x, _ in known), _numbers(y for *_, y in known)
    logarithmic = figure.x.unit is not Unit.SHARE and min(xs) > 0 and max(xs) / min(xs) > LONG_SCALE
    x_reach, y_reach = _reaches(report, figure, known, logarithmic)
    plot = go.Figure(layout=axes.layout(340))
    plot.update_xaxes(**axes.quantity_axis(figure.x, x_reach, logarithmic=logarithmic))
    plot.update_yaxes(**axes.quantity_axis(figure.y, y_reach))
    notes.append(_add_target(plot, report, figure))
    on_line = set(pareto(xs, ys, figure.x.higher_is_better, figure.y.higher_is_better))
    if figure.pareto:
        notes.append(_add_pareto(plot, xs, ys, sorted(on_line, key=lambda i: (xs[i], ys[i]))))
    at = zip(axes.positions(xs, x_reach, logarithmic=logarithmic), axes.positions(ys, y_reach), strict=True)
    labels, places, key = _labels(report, [s for s, *_ in known], list(at))
    colours = [ACCENT if i in on_line or not figure.pareto else MUTED for i in range(len(known))]
    with_intervals = len(known) <= INTERVALS_UP_TO
    plot.add_scatter(
        x=xs,
        y=ys,
        mode="markers+text",
        text=[axes.safe(label) for label in labels],
        textposition=places,
        textfont={"size": 11},
        marker={
            "size": 11,
            "symbol": ["circle-open" if x.doubtful or y.doubtful else "circle" for _, x, y in known],
            "color": colours,
            "line": {"width": 2, "color": colours},
        },
        error_x=axes.error_bars([x for _, x, _ in known]) if with_intervals else None,
        error_y=axes.error_bars([y for *_, y in known]) if with_intervals else None,
        hoverinfo="text",
        hovertext=[axes.hover(s, ((figure.x, x), (figure.y, y))) for s, x, y in whole],
    )
    return Drawing.of(plot, alt, notes, key=key)


def pareto(xs: Sequence[float], ys: Sequence[float], x_up: bool, y_up: bool) -> list[int]:
    """List the indices, by x, of the points that no other beats: at least as good in both, and better in one."""
    goods = [(x if x_up else -x, y if y_up else -y) for x, y in zip(xs, ys, strict=True)]
    beaten = {i for i, a in enumerate(goods) for b in goods if b != a and b[0] >= a[0] and b[1] >= a[1]}
    return sorted((i for i in range(len(goods)) if i not in beaten), key=lambda i: (xs[i], ys[i]))


def letter(k: int) -> str:
    """Name the k-th thing by letters: A to Z, AA to ZZ, and so on."""
    return chr(ord("A") + k) if k < 26 else letter(k // 26 - 1) + letter(k % 26)


def _reaches(report: Report, figure: Scatter, known: Sequence[Point], logarithmic: bool) -> tuple[Reach, Reach]:
    """Compute the ends of both axes: 0 to 1 with a target's zone, else as far as the points and the target go."""
    if figure.target_zone:
        return (-0.04, 1.04), (-0.04, 1.04)
    headline = report.ranking is not None and figure.y == report.ranking.quantity
    return (
        axes.reach_of(figure.x, [x for _, x, _ in known], logarithmic=logarithmic),
        axes.reach_of(figure.y, [y for *_, y in known], also=report.target if headline else None),
    )


def _labels(
    report: Report, subjects: Sequence[Subject], at: Sequence[tuple[float, float]]
) -> tuple[list[str], list[str], tuple[Key, ...]]:
    """Choose labels, their places, and the legend: names beside the points if all find room there, letters if not.

    A letter is the same model's in every drawing of a report.
    """
    for named in (axes.names(subjects), short_names([s.brief for s in subjects], axes.LONGEST_NAME)):
        places, crowded = place_labels(at, [cell_len(name) for name in named])
        if not crowded:
            return named, places, ()
    letters = [letter(report.subjects.index(s)) for s in subjects]
    places, _ = place_labels(at, [len(each) for each in letters])
    key = (Key(one_line(s.name, 300), letter=each) for s, each in zip(subjects, letters, strict=True))
    return letters, places, tuple(key)


def _add_pareto(plot: "go.Figure", xs: Sequence[float], ys: Sequence[float], frontier: Sequence[int]) -> str:
    """Join the points of the frontier; returns what the line means, or nothing where it is a point."""
    line = {"color": ACCENT, "width": 1.5, "dash": "dot"}
    if len({(xs[i], ys[i]) for i in frontier}) < 2:
        return ""
    path = {"x": [xs[i] for i in frontier], "y": [ys[i] for i in frontier]}
    plot.add_scatter(**path, mode="lines", line=line, hoverinfo="skip")
    return "Dotted, blue: the Pareto line, models that no other beats in both."


def _add_target(plot: "go.Figure", report: Report, figure: Scatter) -> str:
    """Mark the target; returns what the mark means, or nothing where there is none."""
    if report.target is None or report.ranking is None:
        return ""
    line = {"color": GREEN, "width": 1.5, "dash": "dash"}
    wanted = f"{report.ranking.quantity.label} of {number(report.target, report.ranking.quantity.unit)} or better"
    if figure.target_zone:
        corner = 2 * report.target - 1  # where the mean of x and y is the target, and one of them is 1
        path = f"M {corner},1 L 1,{corner} L 1,1 Z"
        plot.add_shape(type="path", path=path, fillcolor=GREEN, opacity=0.22, line=line, layer="below")
        return f"Shaded: {wanted}."
    if figure.y == report.ranking.quantity:
        plot.add_hline(y=report.target, line=line)
        return f"Dashed: the target, {wanted}."
    return ""


def _numbers(values: Iterable[Value]) -> list[float]:
    return [v.value for v in values if v.value is not None]
