"""A figure as SVG: bars, points, lines and heat maps, at the width that is asked for.

Each mark has its numbers as a tooltip. Text takes the colour of the page around it; a file alone is dark on white.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from evalake.reports.axes import Key

if TYPE_CHECKING:
    import plotly.graph_objects as go

CHARACTER = 7
"""Pixels of a wide character in a label."""

SMALLEST = 8
"""Pixels of the smallest type that is written; cells without room for it stay empty."""

_DASHES = {"dot": "2 3", "dash": "6 4"}
_SIDES = {"left": ("end", -1), "center": ("middle", 0), "right": ("start", 1)}
_RISE = {"top": -9, "middle": 4, "bottom": 17}


class Picture(str):
    """The text of an SVG, which a notebook shows drawn."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def as_svg(figure: "go.Figure", width: int, name: str, label: str) -> Picture:
    """Draw a figure `width` pixels wide; `name` begins the ids in it, `label` says what it shows."""
    spec = figure.to_dict()
    return Picture("".join(_Plot.of(spec, width, name).draw(label)))


def alone(drawn: Picture, width: int, title: str, keys: Sequence[Key]) -> Picture:
    """Set the title over a drawing and its legend under it, for where no page around it has them."""
    lines = wrap(title, width // CHARACTER - 4)
    top = 20 * len(lines) + 8
    entries, x, y = [], 8, top + float(drawn.split('height="', 1)[1].split('"', 1)[0]) + 18
    for key in keys:
        room = 34 + CHARACTER * cell_len(key.text)
        if x > 8 and x + room > width:
            x, y = 8, y + 20
        mark = _text(x, y, escape(key.letter)) if key.letter else ""
        fill = f'<rect x="{x}" y="{y - 10:g}" width="12" height="12" fill="{key.colour}"/>' if key.colour else ""
        entries.append(f"{fill}{mark}{_text(x + 18, y, escape(key.text))}")
        x += room
    height = y + 12 if keys else y - 18
    head = [_text(8, 20 * number, escape(line), size=14) for number, line in enumerate(lines, start=1)]
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        f'font-size="12" style="color:#1c2026;background:#fff">{"".join(head)}'
        f'{drawn.replace("<svg ", f"""<svg y="{top}" """, 1)}{"".join(entries)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis: its specification, and the pixels of its two ends."""

    spec: Mapping[str, Any]
    start: float
    end: float

    def at(self, value: float, *, share: bool = False) -> float:
        """Compute the pixel of a value, or of a share of the axis; what lies beyond the axis stops at its end."""
        low, high = (0.0, 1.0) if share else self.spec["range"]
        if self.spec.get("type") == "log" and not share:
            value = math.log10(value) if value > 0 else low
        position = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(self.start + position * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """List the marks with their pixels."""
        if self.spec.get("visible") is False:
            return []
        marks = zip(self.spec.get("tickvals") or (), self.spec.get("ticktext") or (), strict=True)
        return [(self.at(value), text) for value, text in marks]

    @property
    def title(self) -> str:
        """Its title, empty where it has none."""
        return str(self.spec.get("title", {}).get("text") or "")


@dataclass(frozen=True, slots=True)
class _Plot:
    """One figure at one width."""

    spec: Mapping[str, Any]
    name: str
    width: int
    height: float
    x: _Axis
    y: _Axis
    type_size: float
    heading_size: float

    @classmethod
    def of(cls, spec: Mapping[str, Any], width: int, name: str) -> "_Plot":
        layout = spec["layout"]
        margin, xaxis, yaxis = layout["margin"], layout["xaxis"], layout["yaxis"]
        height, left, top, size = layout["height"], margin["l"], margin["t"], 11.0
        heading = size
        if yaxis.get("visible") is not False:
            left = 8 + max((cell_len(unescape(t)) * CHARACTER for t in yaxis.get("ticktext") or ()), default=0)
            left += 20 * bool(yaxis.get("title", {}).get("text"))
        if (meta := layout.get("meta")) is not None:  # columns of colours: their names are upright without room
            room = (width - left - margin["r"]) / meta["columns"]
            flat = meta["heading"] * CHARACTER < room
            top = 24 if flat else meta["heading"] * CHARACTER + 12
            xaxis = {**xaxis, "side": "top", "tickangle": 0 if flat else -90}
            size = min(11.0, (room - 4) / (max(meta["text"], 1) * 0.64))
            heading = min(11.0, room * 0.72)
            height += top
        bottom = height - margin["b"]
        x, y = _Axis(xaxis, left, width - margin["r"]), _Axis(yaxis, bottom, top)
        return cls(spec, name, width, height, x, y, size, heading)

    def draw(self, label: str) -> Iterator[str]:
        """Yield the parts of the drawing, those behind first."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height:g}" width="{self.width}" '
            f'height="{self.height:g}" role="img" aria-label="{escape(label)}" font-family="system-ui, sans-serif" '
            f'font-size="12" style="color:#1c2026;background:#fff">'
        )
        yield (
            f'<defs><pattern id="{self.name}-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0V6" stroke="#fff" stroke-width="3"/></pattern></defs>'
        )
        for shape in self.spec["layout"].get("shapes", ()):
            yield self._shape(shape)
        yield from self._grid()
        stacked: dict[float, float] = {}
        for trace in self.spec["data"]:
            match trace["type"]:
                case "bar":
                    yield from self._bars(trace, stacked)
                case "heatmap":
                    yield from self._cells(trace)
                case _:
                    yield from self._points(trace)
        for note in self.spec["layout"].get("annotations", ()):
            x = self.x.at(note["x"], share=note.get("xref") == "paper") + note.get("xshift", 0)
            yield _text(x, self.y.at(note["y"]) + 4, note["text"], size=note.get("font", {}).get("size", 12))
        yield "</svg>"

    def _grid(self) -> Iterator[str]:
        """Yield the lines and labels of both axes, and their titles."""
        above = self.x.spec.get("side") == "top"
        for at, text in self.x.ticks:
            if self.x.spec.get("showgrid") is not False:
                yield f'<path d="M{at} {self.y.start}V{self.y.end}" stroke="currentColor" opacity=".18"/>'
            if above and self.x.spec.get("tickangle"):
                yield _text(at + 4, self.y.end - 6, text, size=self.heading_size, turned=True)
            else:
                half = cell_len(unescape(text)) * CHARACTER / 2
                at = min(max(at, half), self.width - half)
                yield _text(at, self.y.end - 8 if above else self.y.start + 18, text, "middle", 11 if above else 12)
        for at, text in self.y.ticks:
            if self.y.spec.get("showgrid") is not False:
                yield f'<path d="M{self.x.start} {at}H{self.x.end}" stroke="currentColor" opacity=".18"/>'
            yield _text(self.x.start - 6, at + 4, text, "end")
        if self.x.title:
            yield _text((self.x.start + self.x.end) / 2, self.y.start + 38, self.x.title, "middle")
        if self.y.title and self.y.spec.get("visible") is not False:
            yield _text(13, (self.y.start + self.y.end) / 2, self.y.title, "middle", turned=True)

    def _bars(self, trace: Mapping[str, Any], stacked: dict[float, float]) -> Iterator[str]:
        """Yield horizontal bars, which begin where those of earlier traces end if the figure stacks them."""
        stacks = self.spec["layout"].get("barmode") == "stack"
        shapes = trace["marker"].get("pattern", {}).get("shape") or [""] * len(trace["x"])
        for k, (value, row) in enumerate(zip(trace["x"], trace["y"], strict=True)):
            if value is None:
                continue
            before = stacked.get(row, 0.0) if stacks else 0.0
            stacked[row] = before + value
            left, right = sorted((self.x.at(before), self.x.at(before + value)))
            place = (
                f'x="{left}" y="{self.y.at(row) - trace["width"] / 2}" width="{right - left:.1f}" '
                f'height="{trace["width"]}"'
            )
            yield f'<g><rect {place} fill="{trace["marker"]["color"]}"/>'
            if shapes[k]:
                yield f'<rect {place} fill="url(#{self.name}-hatch)" opacity=".6"/>'
            yield _tip(trace, k) + "</g>"
            yield self._error(trace, "error_x", k, value, row)

    def _cells(self, trace: Mapping[str, Any]) -> Iterator[str]:
        """Yield coloured cells with their texts, in a colour that can be read on them."""
        columns = len(trace["z"][0])
        wide = (self.x.end - self.x.start) / columns - trace["xgap"]
        step = trace.get("dy", 1)
        for i, row in enumerate(trace["z"]):
            middle = self.y.at(trace.get("y0", 0) + i * step)
            high = abs(self.y.at(step) - self.y.at(0)) - trace["ygap"]
            for k, value in enumerate(row):
                left = self.x.at(k) - wide / 2
                colour = None if value is None else _between(trace, value)
                yield (
                    f'<g><rect x="{left:.1f}" y="{middle - high / 2:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                    f'fill="{colour or "none"}"/>'
                )
                if self.type_size >= SMALLEST:
                    ink = "currentColor" if colour is None else _ink(colour)
                    size = round(self.type_size, 1)
                    yield _text(self.x.at(k), middle + size / 3, trace["text"][i][k], "middle", size, ink)
                yield f"<title>{_plain(trace['hovertext'][i][k])}</title></g>"

    def _points(self, trace: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line, points, or both, with the ends of their intervals and their names."""
        points = [(self.x.at(x), self.y.at(y)) for x, y in zip(trace["x"], trace["y"], strict=True)]
        if "lines" in trace["mode"]:
            path = "L".join(f"{x} {y}" for x, y in points)
            yield f'<path d="M{path}" fill="none" {_stroke(trace["line"])}/>'
        if "markers" not in trace["mode"]:
            return
        marker = trace["marker"]
        for k, (x, y) in enumerate(points):
            yield self._error(trace, "error_x", k, trace["x"][k], trace["y"][k])
            yield self._error(trace, "error_y", k, trace["y"][k], trace["x"][k])
            colour, size = _nth(marker["color"], k), _nth(marker["size"], k)
            fill = "none" if _nth(marker.get("symbol", "circle"), k).endswith("open") else colour
            yield f'<circle cx="{x}" cy="{y}" r="{size / 2}" fill="{fill}" stroke="{colour}" stroke-width="2">'
            yield _tip(trace, k) + "</circle>"
            if "text" in trace["mode"]:
                up, side = trace["textposition"][k].split(" ")
                anchor, right = _SIDES[side]
                yield _text(x + right * 9, y + _RISE[up], trace["text"][k], anchor, 11)

    def _error(self, trace: Mapping[str, Any], name: str, k: int, value: float, across: float) -> str:
        """Draw the interval of one value, with a cap at each end; nothing where it is a point or unknown."""
        bars = trace.get(name)
        if not bars or not (bars["array"][k] or bars["arrayminus"][k]):
            return ""
        along, other = (self.x, self.y) if name == "error_x" else (self.y, self.x)
        low, high = along.at(value - bars["arrayminus"][k]), along.at(value + bars["array"][k])
        at, cap = other.at(across), 3
        if name == "error_x":
            path = f"M{low} {at}H{high}M{low} {at - cap}v{2 * cap}M{high} {at - cap}v{2 * cap}"
        else:
            path = f"M{at} {low}V{high}M{at - cap} {low}h{2 * cap}M{at - cap} {high}h{2 * cap}"
        return f'<path d="{path}" fill="none" stroke="{bars["color"]}" stroke-width="1.2"/>'

    def _shape(self, shape: Mapping[str, Any]) -> str:
        """Draw the zone or the line of a target."""
        if shape["type"] == "line":
            at = self.y.at(shape["y0"])
            return f'<path d="M{self.x.start} {at}H{self.x.end}" {_stroke(shape["line"])}/>'
        corners = [tuple(map(float, each)) for each in re.findall(r"(-?[\d.e-]+),(-?[\d.e-]+)", shape["path"])]
        path = "L".join(f"{self.x.at(x)} {self.y.at(y)}" for x, y in corners)
        fill = f'fill="{shape["fillcolor"]}" fill-opacity="{shape["opacity"]}"'
        return f'<path d="M{path}Z" {fill} {_stroke(shape["line"])}/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: float = 12, ink: str = "currentColor",
    *, turned: bool = False,
) -> str:  # fmt: skip
    around = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:.3g}"'
    return f'<text {place} fill="{ink}"{around}>{_plain(text)}</text>'


def _tip(trace: Mapping[str, Any], k: int) -> str:
    return f"<title>{_plain(trace['hovertext'][k])}</title>" if trace.get("hovertext") else ""


def _plain(text: str) -> str:
    """Convert a label, whose own tags are b and br and whose other text is escaped, to escaped text."""
    return escape(unescape(re.sub(r"</?b>", "", text.replace("<br>", "\n"))))


def _stroke(line: Mapping[str, Any]) -> str:
    dashes = f' stroke-dasharray="{_DASHES[line["dash"]]}"' if "dash" in line else ""
    return f'stroke="{line["color"]}" stroke-width="{line["width"]}"{dashes}'


def _nth(value: Any, k: int) -> Any:
    return value[k] if isinstance(value, list | tuple) else value


def _between(trace: Mapping[str, Any], value: float) -> str:
    """Mix the colours of a scale around a value."""
    at = min(max((value - trace["zmin"]) / (trace["zmax"] - trace["zmin"]), 0.0), 1.0)
    scale: Sequence[tuple[float, str]] = trace["colorscale"]
    upper = next(k for k in range(1, len(scale)) if at <= scale[k][0] or k == len(scale) - 1)
    (low, first), (high, second) = scale[upper - 1], scale[upper]
    part = (at - low) / (high - low)
    mixed = (round(a + part * (b - a)) for a, b in zip(_rgb(first), _rgb(second), strict=True))
    return "#" + "".join(f"{each:02x}" for each in mixed)


def _ink(colour: str) -> str:
    """Choose black or white, whichever has the higher contrast on a colour: at least 4.5 : 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _rgb(colour))]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#fff"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
