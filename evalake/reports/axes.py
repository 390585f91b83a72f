"""Axes, rows, intervals, tooltips and names, which all drawings share.

A drawing is as wide as its column, whatever that is: names of models stand above their row or in a legend of the page,
never beside the drawing, and legends are the page's, which breaks them where they need it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evalake.reports.report import Subject, Value
from evalake.reports.svg import CHARACTER, Axis, Ends, Figure, Key, Note
from evalake.reports.wording import UNRELIABLE, interval, number, short_names, visible
from evalake.sdk.figures import Quantity, Unit

# A drawing: figures, their description, and the legend that the page sets under them.


ACCENT, GREEN, MUTED = "#3b82c4", "#4a9d5b", "#8a919c"
COLOURS = (ACCENT, "#d07a1f", GREEN, "#a06cc0", "#cf4f4f", "#8a7a5a", "#2f9fa3", "#c9a227", "#d27ba6", "#7d838c")
"""Enough for every class of a whole to have one of its own."""

BAD_TO_GOOD = ((0.0, "#c8641f"), (0.5, "#efe9df"), (1.0, "#2a6fb5"))


@dataclass(frozen=True, slots=True)
class Drawing:
    """Figures by their titles; none where there is nothing to draw, which a note explains."""

    panels: Mapping[str, Figure]
    alt: str
    notes: tuple[str, ...] = ()
    key: tuple[Key, ...] = ()
    wide: bool = False

    @classmethod
    def of(cls, figure: Figure | None, alt: str, notes: Sequence[str] = (), **more: Any) -> "Drawing":
        """Build a drawing of one figure without a title, or of none; empty and repeated notes are dropped."""
        distinct = tuple(dict.fromkeys(note for note in notes if note))
        return cls({} if figure is None else {"": figure}, alt, distinct, **more)


def colour(k: int) -> str:
    """Choose the colour of the k-th thing shown."""
    return COLOURS[k % len(COLOURS)]


LONGEST_NAME, LONGEST_TEXT = 40, 300
"""Cells of a name that has to fit the width of a telephone, and characters of any other text."""

_STEPS = (1, 2, 5)
TELEPHONE = 270
"""Pixels of an axis on a telephone."""

NAME, GAP = 20, 10
"""Pixels: the line of a name above its row, and the room to the next one."""


def quantity_axis(
    quantity: Quantity, reach: tuple[float, float], title: str | None = None, *, logarithmic: bool = False
) -> Axis:
    """Build the axis of a quantity from end to end (`reach`, in decades where logarithmic)."""
    title = f"{quantity.label} ({better(quantity)})" if title is None else title
    return Axis(reach, _ticks(quantity.unit, reach, logarithmic), visible(title, LONGEST_TEXT), logarithmic)


def better(quantity: Quantity) -> str:
    """Say whether more or less of a quantity is better."""
    return f"{'more' if quantity.higher_is_better else 'less'} is better"


def row_tops(rows: int, content: int) -> list[int]:
    """Compute where each row's content begins, in pixels from the top, if it is `content` high and under its name."""
    return [i * (NAME + content + GAP) + NAME for i in range(rows)]


def rows_height(rows: int, content: int) -> int:
    """Compute the height of so many rows in pixels."""
    return rows * (NAME + content + GAP)


def named_rows(named: Sequence[str], content: int) -> tuple[Axis, list[Note]]:
    """Build the vertical axis of rows under their names, and these names.

    The axis counts pixels, so that names and rows keep their size however many there are.
    """
    tops = zip(named, row_tops(len(named), content), strict=True)
    axis = Axis((rows_height(len(named), content), 0))
    return axis, [Note(visible(name, LONGEST_TEXT), top - NAME / 2, size=12) for name, top in tops]


def reach_of(
    quantity: Quantity, values: Sequence[Value], *, logarithmic: bool = False, also: float | None = None
) -> tuple[float, float]:
    """Compute the ends of an axis with room for all values, intervals and `also`; those of shares are about 0 to 1."""
    ends = [end for v in (*values, Value(also)) for end in (v.value, v.ci_low, v.ci_high) if end is not None]
    if logarithmic:
        ends = [math.log10(end) for end in ends if end > 0]
    low, high = min(ends), max(ends)
    share = quantity.unit is Unit.SHARE
    room = max(0.12 * (high - low), 0.05 if share or logarithmic else 0.12 * abs(high) or 1.0)
    if share:
        return (low - room if low < 0 else max(low - room, -0.05)), min(high + room, 1.05)
    least = -0.08 * (high + room) if low >= 0 and not logarithmic else -math.inf  # money and time are never below 0
    return max(low - room, least), high + room


def positions(values: Sequence[float], reach: Sequence[float], *, logarithmic: bool = False) -> list[float]:
    """Compute where values lie between the ends of their axis, as shares of it."""
    low, high = reach
    return [((math.log10(v) if logarithmic else v) - low) / (high - low) for v in values]


def drawn(value: Value, quantity: Quantity) -> Value:
    """Convert a value to the unit that it is drawn in: milliseconds to seconds."""
    if quantity.unit is not Unit.MILLISECONDS:
        return value
    seconds = [None if end is None else end / 1000 for end in (value.value, value.ci_low, value.ci_high)]
    return Value(seconds[0], value.n, seconds[1], seconds[2], value.reliable)


def ends(value: Value) -> Ends:
    """Compute the ends of a value's interval; None where it is unknown, or has no length."""
    if value.value is None or value.ci_low is None or value.ci_high is None:
        return None
    low, high = min(value.ci_low, value.value), max(value.ci_high, value.value)
    return (low, high) if low < high else None


def hover(subject: Subject, shown: Sequence[tuple[Quantity, Value]], part: str | None = None) -> str:
    """Write model, part of a slice, and values with interval and n, a line each."""
    lines = [subject.name, *([part] if part is not None else [])]
    for quantity, v in shown:
        between = interval(v.ci_low, v.ci_high, quantity.unit, v.value)
        text = " ".join(filter(None, (f"{quantity.label}: {number(v.value, quantity.unit)}", between)))
        lines.append(f"{visible(text, LONGEST_TEXT)}, n = {v.n:,}{' (unreliable)' * v.doubtful}")
    return "\n".join(visible(line, LONGEST_TEXT) for line in lines)


def value_text(value: Value, quantity: Quantity) -> str:
    """Write a value as it stands in a drawing."""
    return "unknown" if value.value is None else number(value.value, quantity.unit) + UNRELIABLE * value.doubtful


def left_out(label: str, missing: Sequence[Subject], of: Sequence[Subject]) -> str:
    """Say which models are missing from a drawing, and why; empty where none is."""
    if not missing:
        return ""
    if len(missing) == len(of):
        return f"{label} is unknown for every model."
    listed = ", ".join(names(missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return f"Left out, as {label} is unknown: {listed}."


def _ticks(unit: Unit, reach: tuple[float, float], logarithmic: bool) -> list[tuple[float, str]]:
    """Choose where an axis is labelled: as densely as labels have room on a telephone; shares from 0 to 1 only."""
    signed = unit in (Unit.SCORE, Unit.POINTS) or -reach[0] > reach[1]  # a share, or a saving, below zero
    ends = (reach[0] if signed else max(reach[0], 0.0), min(reach[1], 1.0) if unit is Unit.SHARE else reach[1])
    choices = _powers(reach) if logarithmic else _multiples(ends)
    marks = next((some for some in choices if _have_room(some, unit, reach, logarithmic)), [ends[1]])
    return [(at, _label(at, unit)) for at in marks]


def _powers(reach: tuple[float, float]) -> Iterator[list[float]]:
    """Yield sets of marks for a scale in decades: 1, 2, 5; powers of ten; every second power, and so on."""
    decades = range(math.floor(reach[0]), math.ceil(reach[1]) + 1)
    some = [[step * 10.0**decade for decade in decades for step in _STEPS]]
    some += [[10.0**decade for decade in decades if decade % k == 0] for k in range(1, len(decades) + 1)]
    return ([at for at in marks if reach[0] <= math.log10(at) <= reach[1]] for marks in some)


def _multiples(ends: tuple[float, float]) -> Iterator[list[float]]:
    """Yield sets of marks at the multiples of 1, 2, 5 times a power of ten, from the densest of use to 2 or 3 marks."""
    low, high = ends
    power = 10.0 ** math.floor(math.log10(high - low) - 1)
    for step in (scale * each * power for scale in (1, 10) for each in _STEPS):
        yield [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _have_room(marks: Sequence[float], unit: Unit, reach: tuple[float, float], logarithmic: bool) -> bool:
    at = positions(marks, reach, logarithmic=logarithmic)
    longest = max((len(_label(mark, unit)) for mark in marks), default=0)
    return all(TELEPHONE * (b - a) >= longest * CHARACTER + 4 for a, b in pairwise(at))


def _label(at: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return f"{100 * at:g}%"
    if unit is Unit.MILLISECONDS and not at:
        return "0 s"
    return number(at * 1000 if unit is Unit.MILLISECONDS else at, unit)


def names(subjects: Sequence[Subject]) -> list[str]:
    """Shorten the names of subjects; all stay different."""
    fits = all(len(subject.name) <= LONGEST_NAME for subject in subjects)
    return short_names([subject.name if fits else subject.brief for subject in subjects], LONGEST_NAME)
