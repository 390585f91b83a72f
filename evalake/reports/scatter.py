"""Models as points: one quantity against another, with the Pareto line and the target where they apply.

What is unknown is left out and named in the notes; what is not reliable is drawn hollow.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from evalake.reports import axes
from evalake.reports.axes import ACCENT, GREEN, MUTED, Drawing, colour
from evalake.reports.report import Report, Subject, Value
from evalake.reports.svg import Figure, Key, Line, Point
from evalake.reports.wording import number, one_line, short_names, visible
from evalake.sdk.figures import Reliability, Scatter, Unit

# Places for the names of points: they overlap neither each other, the edge, nor another point.


Box = tuple[float, float, float, float]  # left, bottom, right, top; shares of the plot

CHARACTER, LINE, MARKER = 0.023, 0.05, 0.03
"""Width of a character, height of a line and radius of a marker, as shares of a plot on a telephone."""

_SIDES = (  # diagonal ones first: error bars run straight
    ("top right", 1, 1), ("bottom right", 1, -1), ("top left", -1, 1), ("bottom left", -1, -1),
    ("middle right", 1, 0), ("middle left", -1, 0), ("top center", 0, 1), ("bottom center", 0, -1),
)  # fmt: skip


def place_labels(points: Sequence[tuple[float, float]], lengths: Sequence[int]) -> tuple[list[str], bool]:
    """Choose a side for the label of each point (in shares of the axes), of so many characters.

    Returns also whether it is too crowded for labels of that length: some overlap, or reach over the edge.
    """
    taken: list[Box] = [(x - MARKER, y - LINE / 2, x + MARKER, y + LINE / 2) for x, y in points]
    chosen, crowded = [], False
    for i, ((x, y), length) in enumerate(zip(points, lengths, strict=True)):
        others = taken[:i] + taken[i + 1 :]
        costs = [
            (sum(_overlap(box, other) for other in others) + 5 * _outside(box), order, side, box)
            for order, (side, box) in enumerate(_candidates(x, y, length))
        ]
        cost, _, side, box = min(costs)
        crowded |= cost > 0
        chosen.append(side)
        taken.append(box)
    return chosen, crowded


def _candidates(x: float, y: float, length: int) -> Iterator[tuple[str, Box]]:
    width = length * CHARACTER
    for side, right, up in _SIDES:
        middle = x + right * (MARKER + width / 2)
        height = y + up * LINE * (1 if right == 0 else 0.8)
        yield side, (middle - width / 2, height - LINE / 2, middle + width / 2, height + LINE / 2)


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box) -> float:
    return max(0.0, -box[0]) + max(0.0, box[2] - 1) + max(0.0, -box[1]) + max(0.0, box[3] - 1)


INTERVALS_UP_TO = 8
"""With more models than this, the bars of their intervals would hide the points."""

LONG_SCALE = 20.0
"""Quotient of largest and smallest value from which an axis is logarithmic."""

Known = tuple[Subject, Value, Value]
Reach = tuple[float, float]


def draw_scatter(report: Report, figure: Scatter) -> Drawing:
    """Draw one point a model, with intervals."""
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
    if figure.x.unit is not Unit.SHARE and not any(xs):
        return Drawing.of(None, alt, [*notes, f"{figure.x.label} is zero for every model."])
    logarithmic = figure.x.unit is not Unit.SHARE and min(xs) > 0 and max(xs) / min(xs) > LONG_SCALE
    x_reach, y_reach = _reaches(report, figure, known, logarithmic)
    target, meaning = _target(report, figure)
    on_line = set(pareto(xs, ys, figure.x.higher_is_better, figure.y.higher_is_better))
    line, line_meaning = _pareto_line([(xs[i], ys[i]) for i in on_line]) if figure.pareto else ([], "")
    at = zip(axes.positions(xs, x_reach, logarithmic=logarithmic), axes.positions(ys, y_reach), strict=True)
    labels, sides, key = _labels(report, [s for s, *_ in known], list(at))
    with_intervals = len(known) <= INTERVALS_UP_TO
    marks = [
        Point(
            xs[i], ys[i], ACCENT if i in on_line or not figure.pareto else MUTED,
            axes.hover(s, ((figure.x, whole[i][1]), (figure.y, whole[i][2]))),
            hollow=x.doubtful or y.doubtful,
            x_ends=axes.ends(x) if with_intervals else None,
            y_ends=axes.ends(y) if with_intervals else None,
            name=visible(labels[i], axes.LONGEST_TEXT),
            side=sides[i],
        )
        for i, (s, x, y) in enumerate(known)
    ]  # fmt: skip
    x_axis = axes.quantity_axis(figure.x, x_reach, logarithmic=logarithmic)
    plot = Figure(388, 48, x_axis, axes.quantity_axis(figure.y, y_reach), [*line, *marks], behind=target)
    return Drawing.of(plot, alt, [*notes, meaning, line_meaning], key=key)


def pareto(xs: Sequence[float], ys: Sequence[float], x_up: bool, y_up: bool) -> list[int]:
    """List the indices, by x, of the points that no other beats: at least as good in both, and better in one."""
    goods = [(x if x_up else -x, y if y_up else -y) for x, y in zip(xs, ys, strict=True)]
    beaten = {i for i, a in enumerate(goods) for b in goods if b != a and b[0] >= a[0] and b[1] >= a[1]}
    return sorted((i for i in range(len(goods)) if i not in beaten), key=lambda i: (xs[i], ys[i]))


def letter(k: int) -> str:
    """Name the k-th thing by letters: A to Z, AA to ZZ, and so on."""
    return chr(ord("A") + k) if k < 26 else letter(k // 26 - 1) + letter(k % 26)


def _reaches(report: Report, figure: Scatter, known: Sequence[Known], logarithmic: bool) -> tuple[Reach, Reach]:
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


def _pareto_line(frontier: Sequence[tuple[float, float]]) -> tuple[list[Line], str]:
    """Join the points of the frontier; returns also what the line means. One point has no line."""
    if len(set(frontier)) < 2:
        return [], ""
    meaning = "Dotted, blue: the Pareto line, models that no other beats in both."
    return [Line(sorted(frontier), ACCENT, dash="dot")], meaning


def _target(report: Report, figure: Scatter) -> tuple[list[Line], str]:
    """Mark the target; returns also what the mark means, both empty where there is none."""
    if report.target is None or report.ranking is None:
        return [], ""
    wanted = f"{report.ranking.quantity.label} of {number(report.target, report.ranking.quantity.unit)} or better"
    if figure.target_zone:
        corner = 2 * report.target - 1  # where the mean of x and y is the target, and one of them is 1
        zone = Line([(corner, 1.0), (1.0, corner), (1.0, 1.0)], GREEN, dash="dash", shaded=True)
        return [zone], f"Shaded: {wanted}."
    if figure.y == report.ranking.quantity:
        return [
            Line([(-math.inf, report.target), (math.inf, report.target)], GREEN, dash="dash")
        ], f"Dashed: the target, {wanted}."
    return [], ""


def _numbers(values: Iterable[Value]) -> list[float]:
    return [v.value for v in values if v.value is not None]


# How often models are right against how sure they said they were: a line a model.


MOST_LINES = 6
"""The best so many models are drawn; the table has all."""


def draw_reliability(report: Report, figure: Reliability) -> Drawing:
    """Draw accuracy against mean confidence in each tenth, one line a model; the diagonal is perfect calibration."""
    alt = f"{figure.accuracy.label} against {figure.confidence.label}, one line a model."
    parts = report.slice_values(figure.accuracy, figure.slice)
    lines = {subject: _points(report, figure, subject, parts) for subject in _most_judged(report, figure)}
    known = {subject: points for subject, points in lines.items() if points}
    missing = [subject for subject in lines if subject not in known]
    notes = [axes.left_out(figure.confidence.label, missing, list(lines))]
    if not known:
        return Drawing.of(None, alt, notes)
    if len(known) > MOST_LINES:
        notes.append(f"Drawn: the best {MOST_LINES} of {len(known)} models.")
    marks: list[Line | Point] = [Line([(0, 0), (1, 1)], MUTED, 1.2, "dot")]
    shown = list(known)[:MOST_LINES]
    key = [Key(name, colour(k)) for k, name in enumerate(axes.names([Subject(s.model) for s in shown]))]
    for k, subject in enumerate(shown):
        points = [
            Point(
                confidence.value or 0.0, accuracy.value or 0.0, colour(k),
                axes.hover(subject, ((figure.confidence, confidence), (figure.accuracy, accuracy)), part),
                size=7 + 3 * min(len(str(accuracy.n)), 4),
                hollow=accuracy.doubtful,
                y_ends=axes.ends(accuracy),
            )
            for part, confidence, accuracy in known[subject]
        ]  # fmt: skip
        marks += [Line([(point.x, point.y) for point in points], colour(k)), *points]
    x = axes.quantity_axis(figure.confidence, (-0.02, 1.05), figure.confidence.label)
    plot = Figure(408, 48, x, axes.quantity_axis(figure.accuracy, (-0.02, 1.05)), marks)
    return Drawing.of(plot, alt, notes, key=tuple(key))


def _most_judged(report: Report, figure: Reliability) -> list[Subject]:
    """Choose for each model, best first, the judge of most of its answers: lines of further judges would repeat it."""
    chosen: dict[str, Subject] = {}
    for subject in report.subjects:
        best = chosen.setdefault(subject.model, subject)
        if report.value(subject, figure.accuracy).n > report.value(best, figure.accuracy).n:
            chosen[subject.model] = subject
    return list(chosen.values())


def _points(report: Report, figure: Reliability, subject: Subject, parts: list[str]) -> list[tuple[str, Value, Value]]:
    points = []
    for part in parts:
        confidence, accuracy = (
            report.value(subject, q, figure.slice, part) for q in (figure.confidence, figure.accuracy)
        )
        if confidence.value is not None and accuracy.value is not None:
            points.append((part, confidence, accuracy))
    return points
