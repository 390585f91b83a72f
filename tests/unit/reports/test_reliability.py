"""Lines of confidence: a model that knows how sure it may be lies on the diagonal."""

from evalake.reports.scatter import MOST_LINES, draw_reliability
from evalake.reports.svg import Line, Point
from tests.unit.reports.judged import RELIABILITY, tenth
from tests.unit.reports.samples import metric, report


def test_a_reliable_model_lies_on_the_diagonal_and_few_samples_are_hollow() -> None:
    rows = [metric("a", "score", 0.9), *tenth("a", "0.8 to 0.9", 0.85, 0.85), *tenth("a", "0.9 to 1.0", 0.95, 0.5, n=3)]
    plot = draw_reliability(report(rows), RELIABILITY).panels[""]
    diagonal, line = (mark.points for mark in plot.marks if isinstance(mark, Line))
    assert (diagonal, line) == ([(0, 0), (1, 1)], [(0.85, 0.85), (0.95, 0.5)])
    assert [mark.hollow for mark in plot.marks if isinstance(mark, Point)] == [False, True]


def test_of_many_models_the_best_have_lines_and_the_rest_are_counted() -> None:
    rows = []
    for k in range(MOST_LINES + 2):
        rows += [metric(f"m{k}", "score", 1 - k / 10), *tenth(f"m{k}", "all", 0.5, 0.5)]
    drawing = draw_reliability(report(rows), RELIABILITY)
    assert [entry.text for entry in drawing.key] == [f"m{k}" for k in range(MOST_LINES)]
    assert sum(isinstance(mark, Point) for mark in drawing.panels[""].marks) == MOST_LINES
    assert drawing.notes == (f"Drawn: the best {MOST_LINES} of {MOST_LINES + 2} models.",)


def test_models_that_state_no_confidence_are_named() -> None:
    drawing = draw_reliability(report([metric("a", "score", 0.9)]), RELIABILITY)
    assert not drawing.panels
    assert drawing.notes == ("confidence is unknown for every model.",)
