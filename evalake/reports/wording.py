"""How values and names are written for people: numbers by unit, unknown as a dash, hostile characters made visible."""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate

from rich.cells import cell_len

from evalake.core import redaction
from evalake.sdk.figures import Unit

UNKNOWN = "–"
UNRELIABLE = "*"

_SCALES = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"))  # in milliseconds


def number(value: float | None, unit: Unit) -> str:
    """Write a value with its unit; a dash where it is unknown."""
    return UNKNOWN if value is None or not math.isfinite(value) else "".join(_parts(value, unit, value))


def count_of(number: int, noun: str) -> str:
    """Write how many there are of something, like "1 run" or "2 runs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def interval(low: float | None, high: float | None, unit: Unit, value: float | None) -> str:
    """Write the 95 % interval of `value` in brackets, in the value's scale; empty where there is none."""
    if low is None or high is None or value is None or not all(map(math.isfinite, (low, high, value))):
        return ""
    ends = ["".join(_parts(end, unit, value)[:2]) for end in (low, high)]
    return f"[{ends[0]}–{ends[1]}]"


def multiplicity(intervals: int) -> str:
    """Say how many of so many 95 % intervals miss their values by chance."""
    return f"of {intervals:,} intervals side by side, {intervals / 20:,.1f} miss by chance on average"


def lacking(share: float | None) -> str:
    """Say behind a name what share of its items is missing; nothing where none is, or nobody counted."""
    return f" ({share:.1%} missing)" if share else ""


def p_value(p: float | None) -> str:
    """Write a p value; a dash where there was no test."""
    return UNKNOWN if p is None else "<.001" if p < 0.001 else f"{p:.3f}"


def visible(text: object, limit: int = 2000) -> str:
    """Make text safe to show: what would hide, reorder or control other text is escaped, and length is bounded."""
    whole = str(text)
    shown = redaction.visible(whole[:limit])
    return shown if len(whole) <= limit else f"{shown}… ({len(whole) - limit:,} more characters)"


def one_line(text: object, limit: int) -> str:
    """Make text safe to show on one line, for names."""
    return redaction.on_one_line(visible(text, limit))


def markdown_text(text: object, limit: int) -> str:
    """Make text safe in Markdown, table cells included: nothing of it is markup, like an image that is fetched."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|~!@" else c for c in one_line(text, limit))


def short_names(names: Sequence[str], limit: int = 26) -> list[str]:
    """Shorten names for narrow places, all different: where too long, drop leading path parts, then cut the middle.

    `limit` counts cells of a terminal; wide characters take two.
    """
    shortened: list[str] = []
    for name in (one_line(name, 300) for name in names):
        short = name if _size(name) <= limit else name.rsplit("/", 1)[-1]
        cut = f"{_fitting(short, limit - 9)}…{_fitting(short[::-1], 8)[::-1]}"
        shortened.append(short if _size(short) <= limit else cut)
    numbered = [f"{short} ({i})" for i, short in enumerate(shortened, start=1)]
    told_apart = [s if shortened.count(s) == 1 else n for s, n in zip(shortened, numbered, strict=True)]
    return told_apart if len(set(told_apart)) == len(names) else numbered


def _size(text: str) -> int:
    return sum(max(1, cell_len(c)) for c in text)


def _fitting(text: str, room: int) -> str:
    """Cut a text to the beginning that takes no more room than there is."""
    ends = accumulate(max(1, cell_len(c)) for c in text)
    return text[: sum(end <= room for end in ends)]


def _parts(value: float, unit: Unit, like: float) -> tuple[str, str, str]:
    """Write what stands before a number, the number, and what stands behind it; durations take the scale of `like`."""
    match unit:
        case Unit.SHARE:
            return "", f"{100 * value:.1f}", "%"
        case Unit.SCORE:
            return "", f"{value:,.3f}", ""
        case Unit.POINTS:
            return "", f"{value:,.1f}", ""
        case Unit.COUNT:
            return "", f"{value:,.{0 if value == round(value) else 1}f}", ""
        case Unit.US_DOLLARS:
            return "$", dollars(value), ""
        case Unit.MILLISECONDS:
            size, name = next((scale for scale in _SCALES if abs(like) >= scale[0]), _SCALES[-1])
            return "", f"{value / size:,.{0 if abs(like) / size >= 100 else 1}f}", f" {name}"


def dollars(value: float) -> str:
    """Write dollars with cents, or with three significant digits where it is less than a dollar."""
    cents = f"{value:,.2f}"
    return cents if value == 0 or abs(value) >= 1 else max(cents, f"{Decimal(f'{value:.3g}'):f}", key=len)
