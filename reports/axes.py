"""What all drawings share: layout, axes, error bars, hover texts, and names made safe for Plotly's pseudo-HTML."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from reports.report import Subject, Value
from reports.wording import interval, number, short_names, visible
from suites.figures import Quantity, Unit

MUTED = "#8a919c"
LONGEST_NAME = 34

_TICKS: dict[Unit, dict[str, str]] = {
    Unit.US_DOLLARS: {"tickprefix": "$"},
    Unit.MILLISECONDS: {"tickformat": "~s", "ticksuffix": "s"},  # drawn in seconds, so that "s" gives 20ms, 1.5s, 2ks
}
_STEPS = (1, 2, 5)
MOST_TICKS = 8


def layout(height: int) -> dict[str, Any]:
    """A drawing without title and colours, `height` pixels high and as wide as there is room."""
    return {
        "template": "none",
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8, "pad": 4},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "family": "system-ui, sans-serif"},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
            "traceorder": "normal",
        },
        "dragmode": False,
        "hoverlabel": {"align": "left"},
    }


def quantity_axis(quantity: Quantity, reach: tuple[float, float], *, logarithmic: bool = False) -> dict[str, Any]:
    """The axis of a quantity from end to end (`reach`, in decades where logarithmic)."""
    better = "" if quantity.higher_is_better else " (less is better)"
    return {
        "title": {"text": safe(f"{quantity.label}{better}"), "standoff": 12},
        "type": "log" if logarithmic else "linear",
        "range": list(reach),
        "fixedrange": True,
        "automargin": True,
        "zeroline": False,
        **_ticks(quantity.unit, reach, logarithmic),
    }


def rows_axis(subjects: Sequence[Subject]) -> dict[str, Any]:
    """A vertical axis with one row a model, the first at the top."""
    return {
        "tickvals": list(range(len(subjects))),
        "ticktext": [safe(name) for name in names(subjects)],
        "range": [len(subjects) - 0.5, -0.5],
        "fixedrange": True,
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
    }


def reach_of(
    quantity: Quantity, values: Sequence[Value], *, logarithmic: bool = False, also: float | None = None
) -> tuple[float, float]:
    """The ends of an axis that shows all values and intervals (and `also`) with some room; shares stay about 0 to 1."""
    ends = [end for v in (*values, Value(also)) for end in (v.value, v.ci_low, v.ci_high) if end is not None]
    if logarithmic:
        ends = [math.log10(end) for end in ends if end > 0]
    low, high = min(ends), max(ends)
    share = quantity.unit is Unit.SHARE
    room = max(0.12 * (high - low), 0.05 if share or logarithmic else 0.12 * abs(high) or 1.0)
    if share:
        return max(low - room, -0.05), min(high + room, 1.05)
    least = -0.08 * (high + room) if low >= 0 and not logarithmic else -math.inf  # money and time are never below 0
    return max(low - room, least), high + room


def positions(values: Sequence[float], reach: Sequence[float], *, logarithmic: bool = False) -> list[float]:
    """Where values lie between the ends of their axis, as shares of it."""
    low, high = reach
    return [((math.log10(v) if logarithmic else v) - low) / (high - low) for v in values]


def drawn(value: Value, quantity: Quantity) -> Value:
    """The value as it is drawn: milliseconds in seconds."""
    if quantity.unit is not Unit.MILLISECONDS:
        return value
    seconds = [None if end is None else end / 1000 for end in (value.value, value.ci_low, value.ci_high)]
    return Value(seconds[0], value.n, seconds[1], seconds[2], value.reliable)


def error_bars(values: Sequence[Value]) -> dict[str, Any] | None:
    """Bars to the ends of the intervals; None where no value has one."""
    if not any(v.ci_low is not None for v in values):
        return None
    ends = [
        (0.0, 0.0)
        if v.value is None or v.ci_low is None or v.ci_high is None
        else (max(v.ci_high - v.value, 0.0), max(v.value - v.ci_low, 0.0))
        for v in values
    ]
    up, down = zip(*ends, strict=True)
    looks = {"thickness": 1.2, "width": 3, "color": MUTED}
    return {"type": "data", "array": list(up), "arrayminus": list(down), "symmetric": False, **looks}


def hover(subject: Subject, shown: Sequence[tuple[Quantity, Value]], part: str | None = None) -> str:
    """Model, part of a slice, and values with interval and n; for `hovertext`, which fills in nothing."""
    lines = [f"<b>{safe(subject.name)}</b>", *([safe(part)] if part is not None else [])]
    for quantity, v in shown:
        ends = interval(v.ci_low, v.ci_high, quantity.unit, v.value)
        text = " ".join(filter(None, (f"{quantity.label}: {number(v.value, quantity.unit)}", ends)))
        lines.append(f"{safe(text)}, n = {v.n:,}{' (unreliable)' * v.doubtful}")
    return "<br>".join(lines)


def left_out(label: str, subjects: Sequence[Subject]) -> str:
    """Who is missing from a drawing, and why; empty where nobody is."""
    if not subjects:
        return ""
    listed = ", ".join(names(subjects[:5])) + (f" and {len(subjects) - 5} more" if len(subjects) > 5 else "")
    return f"Left out, as {label} is unknown: {listed}."


def _ticks(unit: Unit, reach: tuple[float, float], logarithmic: bool) -> dict[str, Any]:
    """Where an axis is labelled: shares at round ones up to 1, long scales at 1, 2, 5 or at powers of ten only."""
    if logarithmic:
        decades = range(math.floor(reach[0]), math.ceil(reach[1]) + 1)
        every = [[step * 10.0**d for d in decades for step in steps] for steps in (_STEPS, _STEPS[:1])]
        inside = [[at for at in some if reach[0] <= math.log10(at) <= reach[1]] for some in every]
        chosen = inside[0] if len(inside[0]) <= MOST_TICKS else inside[1]
        scale = 1000.0 if unit is Unit.MILLISECONDS else 1.0
        return {"tickvals": chosen, "ticktext": [number(at * scale, unit) for at in chosen]}
    if unit is Unit.SHARE:
        low, high = max(reach[0], 0.0), min(reach[1], 1.0)
        steps = (step * 10.0**d for d in range(-4, 0) for step in _STEPS)
        step = next((s for s in steps if (high - low) / s < MOST_TICKS - 1), 0.5)
        first = math.ceil(low / step - 1e-9)
        marks = range(first, math.floor(high / step + 1e-9) + 1)
        return {"tickvals": [mark * step for mark in marks], "tickformat": "~%"}
    return {"nticks": MOST_TICKS - 1, **_TICKS.get(unit, {})}


def names(subjects: Sequence[Subject]) -> list[str]:
    """Short names, all different."""
    fits = all(len(subject.name) <= LONGEST_NAME for subject in subjects)
    return short_names([subject.name if fits else subject.brief for subject in subjects], LONGEST_NAME)


def safe(text: str) -> str:
    """Text that Plotly shows as it is: its labels understand tags and entities."""
    return escape(visible(text, 300), quote=False)
