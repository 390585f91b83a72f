"""Points: the Pareto line, names or letters beside them, scales, and the target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.reports.axes import Drawing
from evalake.reports.scatter import draw_scatter, letter, pareto
from evalake.reports.svg import Point
from evalake.sdk.figures import Scatter
from tests.unit.reports.samples import ACCEPTANCE, COST, DETECTION, SCORE, guard_metrics, report


def test_the_pareto_line_joins_what_no_other_beats() -> None:
    costs, scores = [1.0, 2.0, 3.0, 2.5, 1.0], [0.5, 0.8, 0.9, 0.7, 0.4]
    assert pareto(costs, scores, False, True) == [0, 1, 2]
    assert pareto(costs, scores, True, True) == [2]
    assert pareto([1.0, 1.0], [0.5, 0.5], False, True) == [0, 1], "equals do not beat each other"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_along_the_pareto_line_more_cost_buys_more_score(points: list[tuple[int, int]]) -> None:
    xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
    line = [(xs[i], ys[i]) for i in pareto(xs, ys, False, True)]
    assert line
    assert sorted(line) == line
    assert [y for _, y in line] == sorted(y for _, y in line)
    assert max(ys) == line[-1][1]


def labels(drawing: Drawing) -> list[str]:
    return [mark.name for mark in drawing.panels[""].marks if isinstance(mark, Point)]


def test_points_bear_names_where_these_have_room_and_else_letters_that_a_legend_explains() -> None:
    figure = Scatter("", COST, SCORE)
    few = [row for k in range(3) for row in guard_metrics(f"p/model-{k}", 0.9 - k / 5, 0.9, cost=1.0 + k)]
    assert labels(draw_scatter(report(few), figure)) == ["p/model-0", "p/model-1", "p/model-2"]
    many = guard_metrics("provider/best-but-unpriced", 1.0, 1.0)
    for k in range(9):
        many += guard_metrics(f"provider/model-of-some-length-{k}", 0.9 - k / 30, 0.9, cost=1.0)
    drawing = draw_scatter(report(many), figure)
    assert labels(drawing) == list("BCDEFGHIJ"), "a letter is the same model's in every drawing, priced or not"
    assert (drawing.key[0].letter, drawing.key[0].text) == ("B", "provider/model-of-some-length-0")


def test_letters_go_on_after_z() -> None:
    assert [letter(k) for k in (0, 25, 26, 27, 51, 52, 701, 702)] == ["A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]


def test_a_long_scale_is_logarithmic_and_free_models_keep_it_linear() -> None:
    figure = Scatter("", COST, SCORE)
    wide = report(guard_metrics("a", 0.9, 0.9, cost=0.01) + guard_metrics("b", 0.8, 0.8, cost=10.0))
    free = report(guard_metrics("a", 0.9, 0.9, cost=0.0) + guard_metrics("b", 0.8, 0.8, cost=10.0))
    assert not draw_scatter(free, figure).panels[""].x.logarithmic
    axis = draw_scatter(wide, figure).panels[""].x
    assert axis.logarithmic
    assert axis.ticks[0][1].startswith("$")


def test_the_target_zone_is_where_the_mean_reaches_the_target() -> None:
    drawing = draw_scatter(report(guard_metrics("a", 0.9, 0.9)), Scatter("", DETECTION, ACCEPTANCE, target_zone=True))
    (zone,) = drawing.panels[""].behind
    assert zone.shaded
    assert [sum(corner) / 2 for corner in zone.points] == pytest.approx([0.85, 0.85, 1.0])
    assert all(0 <= end <= 1 for corner in zone.points for end in corner)
    assert drawing.notes == ("Shaded: score of 85.0% or better.",)


def test_the_target_is_within_the_plot_of_a_score_far_from_it() -> None:
    figure = draw_scatter(report(guard_metrics("a", 0.1, 0.1, cost=1.0)), Scatter("", COST, SCORE)).panels[""]
    low, high = figure.y.reach
    assert low < 0.1 < 0.85 < high


def test_axes_say_which_end_is_the_good_one() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, cost=1.0, categories={"x": 0.5}))
    scatter = draw_scatter(built, Scatter("", COST, SCORE)).panels[""]
    assert (scatter.x.title, scatter.y.title) == ("cost (less is better)", "score (more is better)")
