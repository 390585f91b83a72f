"""A drawing: its figures, its notes said once, and a colour for each thing that is shown."""

from itertools import pairwise

import plotly.graph_objects as go

from evalake.reports.axes import BAD_TO_GOOD, COLOURS, Drawing, colour


def test_notes_are_said_once_and_empty_ones_not_at_all() -> None:
    drawing = Drawing.of(None, "what it shows", ["a", "", "b", "a"])
    assert (drawing.notes, drawing.panels, drawing.figure) == (("a", "b"), {}, None)


def test_the_figure_is_the_first_of_its_panels() -> None:
    first, second = go.Figure(), go.Figure()
    assert Drawing.of(first, "").figure is first
    assert Drawing({"x": second, "y": first}, "").figure is second


def test_neighbours_have_different_colours_however_many_there_are() -> None:
    shown = [colour(k) for k in range(3 * len(COLOURS))]
    assert len(set(shown)) == len(COLOURS)
    assert all(first != second for first, second in pairwise(shown))
    assert [at for at, _ in BAD_TO_GOOD] == [0.0, 0.5, 1.0]
