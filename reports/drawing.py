"""What a drawing is: Plotly figures, what they show in words, and the legend that the page sets under them.

Colours of text, grid and ground are the page's style sheet's, light or dark; those of what is shown are here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

ACCENT, GREEN, MUTED = "#3b82c4", "#4a9d5b", "#8a919c"
COLOURS = (ACCENT, "#d07a1f", GREEN, "#a06cc0", "#cf4f4f", "#8a7a5a", "#2f9fa3", "#c9a227", "#d27ba6", "#7d838c")
"""Enough for every class of a whole to have one of its own."""

BAD_TO_GOOD = ((0.0, "#c8641f"), (0.5, "#efe9df"), (1.0, "#2a6fb5"))


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: what a colour or a letter stands for."""

    text: str
    colour: str | None = None
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Plotly figures by their titles; none where there is nothing to draw, which a note explains."""

    panels: Mapping[str, "go.Figure"]
    alt: str
    notes: tuple[str, ...] = ()
    key: tuple[Key, ...] = ()
    wide: bool = False

    @classmethod
    def of(cls, figure: "go.Figure | None", alt: str, notes: Sequence[str] = (), **more: object) -> "Drawing":
        """Build a drawing of one figure without a title, or of none; empty and repeated notes are dropped."""
        distinct = tuple(dict.fromkeys(note for note in notes if note))
        return cls({} if figure is None else {"": figure}, alt, distinct, **more)  # type: ignore[arg-type]

    @property
    def figure(self) -> "go.Figure | None":
        """The first figure: in most drawings the only one."""
        return next(iter(self.panels.values()), None)


def colour(k: int) -> str:
    """Choose the colour of the k-th thing shown."""
    return COLOURS[k % len(COLOURS)]
