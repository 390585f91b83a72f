"""A figure as SVG: bars, points, lines and heat maps, at the width that is asked for.

Each mark has its numbers as a tooltip. Text takes the colour of the page around it; a file alone is dark on white.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from rich.cells import cell_len

CHARACTER = 7
"""Pixels of a wide character in a label."""

SMALLEST = 8
"""Pixels of the smallest type that is written; cells without room for it stay empty."""

Ends = tuple[float, float] | None
"""The interval of a value; None where it is unknown."""

_DASHES = {"": "", "dot": ' stroke-dasharray="2 3"', "dash": ' stroke-dasharray="6 4"'}
_SIDES = {"left": ("end", -1), "center": ("middle", 0), "right": ("start", 1)}
_RISE = {"top": -9, "middle": 4, "bottom": 17}


class Picture(str):
    """The text of an SVG, which a notebook shows drawn."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


# A figure as data: two axes, marks in the units of these axes, notes, and a legend. All texts are plain.


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: what a colour or a letter stands for."""

    text: str
    colour: str | None = None
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its two ends (decades where logarithmic), its ticks with their labels, and its title."""

    reach: tuple[float, float]
    ticks: Sequence[tuple[float, str]] = ()
    title: str = ""
    logarithmic: bool = False
    grid: bool = True


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal bar from `start` to `end`, `height` pixels high; hatched where its value is not reliable."""

    start: float
    end: float
    row: float
    height: int
    colour: str
    tip: str
    hatched: bool = False
    ends: Ends = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heat map, `height` pixels high; without a colour where its value is unknown."""

    column: int
    row: float
    height: int
    colour: str | None
    text: str
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, or the shaded zone between them."""

    points: Sequence[tuple[float, float]]
    colour: str
    width: float = 1.5
    dash: str = ""
    shaded: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A point, hollow where it is not reliable, with its intervals, and its name on one side of it."""

    x: float
    y: float
    colour: str
    tip: str
    size: float = 11
    hollow: bool = False
    x_ends: Ends = None
    y_ends: Ends = None
    name: str = ""
    side: str = "middle right"


@dataclass(frozen=True, slots=True)
class Note:
    """A text at a height: right of `x`, or at the left edge."""

    text: str
    y: float
    x: float | None = None
    size: int = 11


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure `height` pixels high, of which `below` are under its lower axis; `behind` lies behind its grid."""

    height: int
    below: int
    x: Axis
    y: Axis
    marks: Sequence[Bar | Cell | Line | Point]
    notes: Sequence[Note] = ()
    behind: Sequence[Line] = ()


def as_svg(figure: Figure, width: int, name: str, label: str) -> Picture:
    """Draw a figure `width` pixels wide; `name` begins the ids in it, `label` says what it shows."""
    return Picture("".join(_Plot(figure, width, name).draw(label)))


def alone(drawn: Picture, width: int, title: str, keys: Sequence[Key]) -> Picture:
    """Set the title over a drawing and its legend under it, for where no page around it has them."""
    lines = wrap(title, width // CHARACTER - 4)
    top = 20 * len(lines) + 8
    entries, x, y = [], 8, top + float(drawn.split('height="', 1)[1].split('"', 1)[0]) + 18
    for key in keys:
        room = 34 + CHARACTER * cell_len(key.text)
        if x > 8 and x + room > width:
            x, y = 8, y + 20
        mark = _text(x, y, key.letter) if key.letter else ""
        fill = f'<rect x="{x}" y="{y - 10:g}" width="12" height="12" fill="{key.colour}"/>' if key.colour else ""
        entries.append(f"{fill}{mark}{_text(x + 18, y, key.text)}")
        x += room
    height = y + 12 if keys else y - 18
    head = [_text(8, 20 * number, line, size=14) for number, line in enumerate(lines, start=1)]
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        f'font-size="12" style="color:#1c2026;background:#fff">{"".join(head)}'
        f'{drawn.replace("<svg ", f"""<svg y="{top}" """, 1)}{"".join(entries)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """One axis, and the pixels of its two ends."""

    axis: Axis
    start: float
    end: float

    def at(self, value: float) -> float:
        """Compute the pixel of a value; what lies beyond the axis stops at its end."""
        low, high = self.axis.reach
        if self.axis.logarithmic:
            value = math.log10(value) if value > 0 else low
        position = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(self.start + position * (self.end - self.start), 1)


class _Plot:
    """One figure at one width. `headings` is the type size of headings above columns, None where there are none."""

    def __init__(self, figure: Figure, width: int, name: str) -> None:
        self.figure, self.width, self.name = figure, width, name
        self.height, self.type_size, self.upright = figure.height, 11.0, False
        self.headings: float | None = None
        right, left, top = 28, 16, 8
        if figure.y.ticks:
            left = 8 + max(cell_len(text) for _, text in figure.y.ticks) * CHARACTER + 20 * bool(figure.y.title)
        if texts := [len(mark.text) for mark in figure.marks if isinstance(mark, Cell)]:
            columns, longest = len(figure.x.ticks), max(cell_len(text) for _, text in figure.x.ticks) * CHARACTER
            room = (width - left - right) / columns
            self.upright = longest >= room  # names of columns without room
            top = longest + 12 if self.upright else 24
            self.type_size = min(11.0, (room - 4) / (max(*texts, 1) * 0.64))
            self.headings = min(11.0, room * 0.72)
            self.height += top
        self.x, self.y = _Scale(figure.x, left, width - right), _Scale(figure.y, self.height - figure.below, top)

    def draw(self, label: str) -> Iterator[str]:
        """Yield the parts of the drawing, those behind first."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" aria-label="{escape(label)}" font-family="system-ui, sans-serif" '
            f'font-size="12" style="color:#1c2026;background:#fff">'
        )
        yield (
            f'<defs><pattern id="{self.name}-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0V6" stroke="#fff" stroke-width="3"/></pattern></defs>'
        )
        yield from map(self._line, self.figure.behind)
        yield from self._grid()
        for mark in self.figure.marks:
            match mark:
                case Bar():
                    yield from self._bar(mark)
                case Cell():
                    yield from self._cell(mark)
                case Line():
                    yield self._line(mark)
                case Point():
                    yield from self._point(mark)
        for note in self.figure.notes:
            x = self.x.start if note.x is None else self.x.at(note.x) + 4
            yield _text(x, self.y.at(note.y) + 4, note.text, size=note.size)
        yield "</svg>"

    def _grid(self) -> Iterator[str]:
        """Yield the lines and labels of both axes, and their titles."""
        x, y = self.figure.x, self.figure.y
        for value, text in x.ticks:
            at = self.x.at(value)
            if x.grid:
                yield f'<path d="M{at} {self.y.start}V{self.y.end}" stroke="currentColor" opacity=".18"/>'
            if self.upright and self.headings:
                yield _text(at + 4, self.y.end - 6, text, size=self.headings, turned=True)
            else:
                half = cell_len(text) * CHARACTER / 2
                at, above = min(max(at, half), self.width - half), self.headings is not None
                yield _text(at, self.y.end - 8 if above else self.y.start + 18, text, "middle", 11 if above else 12)
        for value, text in y.ticks:
            at = self.y.at(value)
            if y.grid:
                yield f'<path d="M{self.x.start} {at}H{self.x.end}" stroke="currentColor" opacity=".18"/>'
            yield _text(self.x.start - 6, at + 4, text, "end")
        if x.title:
            yield _text((self.x.start + self.x.end) / 2, self.y.start + 38, x.title, "middle")
        if y.title:
            yield _text(13, (self.y.start + self.y.end) / 2, y.title, "middle", turned=True)

    def _bar(self, bar: Bar) -> Iterator[str]:
        left, right = sorted((self.x.at(bar.start), self.x.at(bar.end)))
        top = self.y.at(bar.row) - bar.height / 2
        place = f'x="{left}" y="{top}" width="{right - left:.1f}" height="{bar.height}"'
        yield f'<g><rect {place} fill="{bar.colour}"/>'
        if bar.hatched:
            yield f'<rect {place} fill="url(#{self.name}-hatch)" opacity=".6"/>'
        yield f"<title>{escape(bar.tip)}</title></g>"
        if bar.ends:
            yield _interval("H", self.x.at(bar.ends[0]), self.x.at(bar.ends[1]), self.y.at(bar.row))

    def _cell(self, cell: Cell) -> Iterator[str]:
        """Yield a coloured cell with its text, in a colour that can be read on it."""
        wide = (self.x.end - self.x.start) / len(self.figure.x.ticks) - 2
        x, y = self.x.at(cell.column), self.y.at(cell.row)
        place = f'x="{x - wide / 2:.1f}" y="{y - cell.height / 2:.1f}" width="{wide:.1f}" height="{cell.height:.1f}"'
        yield f'<g><rect {place} fill="{cell.colour or "none"}"/>'
        if self.type_size >= SMALLEST:
            ink = "currentColor" if cell.colour is None else _ink(cell.colour)
            size = round(self.type_size, 1)
            yield _text(x, y + size / 3, cell.text, "middle", size, ink)
        yield f"<title>{escape(cell.tip)}</title></g>"

    def _line(self, line: Line) -> str:
        path = "L".join(f"{self.x.at(x)} {self.y.at(y)}" for x, y in line.points)
        end, fill = ("Z", f'"{line.colour}" fill-opacity="0.22"') if line.shaded else ("", '"none"')
        stroke = f'stroke="{line.colour}" stroke-width="{line.width}"{_DASHES[line.dash]}'
        return f'<path d="M{path}{end}" fill={fill} {stroke}/>'

    def _point(self, point: Point) -> Iterator[str]:
        x, y = self.x.at(point.x), self.y.at(point.y)
        if point.x_ends:
            yield _interval("H", self.x.at(point.x_ends[0]), self.x.at(point.x_ends[1]), y)
        if point.y_ends:
            yield _interval("V", self.y.at(point.y_ends[0]), self.y.at(point.y_ends[1]), x)
        looks = f'fill="{"none" if point.hollow else point.colour}" stroke="{point.colour}" stroke-width="2"'
        yield f'<circle cx="{x}" cy="{y}" r="{point.size / 2}" {looks}><title>{escape(point.tip)}</title></circle>'
        if point.name:
            up, side = point.side.split(" ")
            anchor, right = _SIDES[side]
            yield _text(x + right * 9, y + _RISE[up], point.name, anchor, 11)


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: float = 12, ink: str = "currentColor",
    *, turned: bool = False,
) -> str:  # fmt: skip
    around = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:.3g}"'
    return f'<text {place} fill="{ink}"{around}>{escape(text)}</text>'


def _interval(along: str, low: float, high: float, at: float) -> str:
    """Draw an interval along H or V, with a cap of 6 pixels at each end."""
    if along == "H":
        path = f"M{low} {at}H{high}M{low} {at - 3}v6M{high} {at - 3}v6"
    else:
        path = f"M{at} {low}V{high}M{at - 3} {low}h6M{at - 3} {high}h6"
    return f'<path d="{path}" fill="none" stroke="#8a919c" stroke-width="1.2"/>'


def mixed(scale: Sequence[tuple[float, str]], at: float) -> str:
    """Mix the colours of a scale around a place of it, from 0 to 1."""
    upper = next(k for k in range(1, len(scale)) if at <= scale[k][0] or k == len(scale) - 1)
    (low, first), (high, second) = scale[upper - 1], scale[upper]
    part = (at - low) / (high - low)
    parts = (round(a + part * (b - a)) for a, b in zip(_rgb(first), _rgb(second), strict=True))
    return "#" + "".join(f"{each:02x}" for each in parts)


def _ink(colour: str) -> str:
    """Choose black or white, whichever has the higher contrast on a colour: at least 4.5 : 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _rgb(colour))]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#fff"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
