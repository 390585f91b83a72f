"""What drawings say beyond their numbers: the Pareto line, places of labels, axes, targets, totals."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.labels import place_labels
from reports.plots import draw_bars, draw_heat_map, draw_scatter, pareto
from suites.figures import Bars, HeatMap, Quantity, Scatter
from tests.reports.samples import ACCEPTANCE, COST, DETECTION, LATENCY, SCORE, guard_metrics, metric, report


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


def test_labels_keep_inside_the_plot_and_off_each_other() -> None:
    assert "left" in place_labels([(0.99, 0.5)], [20])[0]
    assert "right" in place_labels([(0.01, 0.5)], [20])[0]
    assert "bottom" in place_labels([(0.01, 0.99)], [20])[0]
    assert len(set(place_labels([(0.5, 0.5)] * 4, [20] * 4))) == 4


def test_a_long_scale_is_logarithmic_and_free_models_keep_it_linear() -> None:
    figure = Scatter("", COST, SCORE)
    wide = report(guard_metrics("a", 0.9, 0.9, cost=0.01) + guard_metrics("b", 0.8, 0.8, cost=10.0))
    free = report(guard_metrics("a", 0.9, 0.9, cost=0.0) + guard_metrics("b", 0.8, 0.8, cost=10.0))
    for built, kind in ((wide, "log"), (free, "linear")):
        drawn = draw_scatter(built, figure).figure
        assert drawn is not None
        assert drawn.layout.xaxis.type == kind
    wide_axis = draw_scatter(wide, figure).figure.layout.xaxis  # type: ignore[union-attr]
    assert wide_axis.ticktext[0].startswith("$")


def test_the_target_zone_is_where_the_mean_reaches_the_target() -> None:
    drawing = draw_scatter(report(guard_metrics("a", 0.9, 0.9)), Scatter("", DETECTION, ACCEPTANCE, target_zone=True))
    assert drawing.figure is not None
    (zone,) = drawing.figure.layout.shapes
    corners = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+),([\d.]+)", zone.path)]
    assert [sum(corner) / 2 for corner in corners] == pytest.approx([0.85, 0.85, 1.0])
    assert all(0 <= end <= 1 for corner in corners for end in corner)
    assert drawing.notes == ("Shaded: score of 85.0% or better.",)


def test_the_target_is_within_the_plot_of_a_score_far_from_it() -> None:
    figure = draw_scatter(report(guard_metrics("a", 0.1, 0.1, cost=1.0)), Scatter("", COST, SCORE)).figure
    assert figure is not None
    low, high = figure.layout.yaxis.range
    assert low < 0.1 < 0.85 < high


def test_shares_are_labelled_up_to_one() -> None:
    figure = draw_bars(report(guard_metrics("a", 1.0, 1.0)), Bars("", (DETECTION,))).figure
    assert figure is not None
    assert max(figure.layout.xaxis.tickvals) == pytest.approx(1)


def test_bars_are_in_seconds_and_say_what_is_unknown() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, latency=1500.0) + guard_metrics("b", 0.8, 0.8))
    figure = draw_bars(built, Bars("", (LATENCY,))).figure
    assert figure is not None
    bars, texts = figure.data
    assert list(bars.x) == [1.5, None]
    assert [text.strip() for text in texts.text] == ["1.5 s", "unknown"]


def test_stacked_bars_come_to_a_total_unless_a_part_is_unknown() -> None:
    parts = (Quantity("e1", "timeouts"), Quantity("e2", "other"))
    rows = [metric("a", "e1", 0.1), metric("a", "e2", 0.2), metric("b", "e1", 0.1), metric("b", "e2", None, 0)]
    figure = draw_bars(report(rows), Bars("", parts, stacked=True)).figure
    assert figure is not None
    assert [text.strip() for text in figure.data[-1].text] == ["30.0%", "unknown"]


def test_a_heat_map_leaves_out_models_without_any_value() -> None:
    rows = guard_metrics("a", 0.9, 0.9, categories={"x": 0.5, "y": None}) + guard_metrics("b", 0.8, 0.8)
    drawing = draw_heat_map(report(rows), HeatMap("", DETECTION, "category"))
    assert drawing.figure is not None
    assert [list(row) for row in drawing.figure.data[0].z] == [[0.5, None]]
    assert drawing.notes == ("Left out, as detection by category is unknown: b.",)
