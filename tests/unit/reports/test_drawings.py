"""Drawings: axes, bars, heat maps, scatter and reliability."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import UsageError
from evalake.reports.axes import TELEPHONE, Drawing, hover, positions, quantity_axis, reach_of
from evalake.reports.bars import MOST_PAIRS, draw_bars, draw_by_judge, draw_decisions, draw_statistics
from evalake.reports.files import as_json
from evalake.reports.heat_maps import MOST_COLUMNS, draw_agreement, draw_heat_map
from evalake.reports.page import write_files
from evalake.reports.report import Subject, Value
from evalake.reports.scatter import LONG_SCALE, MOST_LINES, draw_reliability, draw_scatter, letter, pareto
from evalake.reports.svg import CHARACTER, Bar, Figure, Line, Point, as_svg
from evalake.sdk.figures import Bars, HeatMap, Quantity, Scatter, Statistics
from tests.unit.reports.judged import (
    AGREEMENT,
    BY_JUDGE,
    DECISIONS,
    KAPPA,
    RELIABILITY,
    by,
    of_two_judges,
    pairs_of_judges,
    tenth,
)
from tests.unit.reports.samples import ACCEPTANCE, COST, DETECTION, LATENCY, SCORE, guard_metrics, metric, report

# What all drawings share: axes, ends, positions, and names made safe.


@pytest.mark.parametrize("judge", ["panel:somebody/x+somebody/y", "vendor/judge"])
def test_names_in_plots_keep_model_and_judge_apart(judge: str) -> None:
    rows = by(judge, [metric("somebody/a-model-of-some-length", "score", 0.9)])
    plot = draw_bars(report(rows), Bars("", (SCORE,))).panels[""]
    kind = "panel of 2" if judge.startswith("panel") else "judge"
    assert f"a-model-of-some-length · {kind}" in [note.text for note in plot.notes]


def test_shares_are_labelled_up_to_one() -> None:
    figure = draw_bars(report(guard_metrics("a", 1.0, 1.0)), Bars("", (DETECTION,))).panels[""]
    assert max(figure.x.ticks) == (pytest.approx(1), "100%")


def test_an_axis_has_room_about_what_it_shows_and_money_and_time_do_not_begin_far_below_zero() -> None:
    assert reach_of(DETECTION, [Value(0.0), Value(1.0)]) == (-0.05, 1.05)
    low, high = reach_of(COST, [Value(1.0, 1, 0.5, 2.0)], also=4.0)
    assert low > -0.1 * high
    assert low < 0.5
    assert high > 4.0
    assert reach_of(COST, [Value(0.0), Value(1.0), Value(100.0)], logarithmic=True) == pytest.approx((-0.24, 2.24))


def test_a_hover_text_says_of_how_many_and_a_drawing_escapes_it() -> None:
    text = hover(Subject("<b>a", "j&k"), [(DETECTION, Value(0.5, 1200))], part="<i>\x1b")
    assert text == "<b>a · j&k\n<i>\\u001b\ndetection: 50.0%, n = 1,200 (unreliable)"
    figure = draw_bars(report(guard_metrics("<b>a", 1.0, 1.0)), Bars("", (DETECTION,))).panels[""]
    assert "&lt;b&gt;a" in as_svg(figure, 340, "f", "<i>")
    assert not re.findall("<[bi]>", as_svg(figure, 340, "f", "<i>"))


@given(st.floats(1e-4, 1e6), st.floats(LONG_SCALE, 1e6))
def test_marks_of_an_axis_of_money_have_room_for_their_labels(low: float, times: float) -> None:
    reach = (math.log10(low), math.log10(low * times))
    axis = quantity_axis(COST, reach, logarithmic=True)
    at = positions([value for value, _ in axis.ticks], reach, logarithmic=True)
    longest = max(len(text) for _, text in axis.ticks)
    assert all(TELEPHONE * (b - a) >= longest * CHARACTER for a, b in pairwise(at))


# Bars say what they come to and what is unknown: of models, judges and pairs of judges.


def bars(figure: Figure) -> list[Bar]:
    return [mark for mark in figure.marks if isinstance(mark, Bar)]


def texts(figure: Figure) -> list[str]:
    """Names of rows, then what stands at the ends of bars."""
    return [note.text for note in figure.notes]


def test_each_judge_has_a_bar_for_each_model_and_panels_without_a_word_have_none() -> None:
    plot = draw_by_judge(of_two_judges(), BY_JUDGE)
    assert [entry.text for entry in plot.key] == ["x", "y"]
    assert [bar.end for bar in bars(plot.panels[""])] == [0.1, 0.1, 0.3]
    assert texts(plot.panels[""]) == ["a", "b", "10.0%", "10.0%", "30.0%", "unknown"]


def test_statistics_of_judges_are_drawn_from_below_zero_where_they_go_there() -> None:
    built = report([*by("x", [metric("a", "cohen_kappa", 0.5)]), *by("y", [metric("a", "cohen_kappa", -0.25)])])
    drawing = draw_statistics(built, Statistics("Firm", (KAPPA,), by_judge=True))
    assert drawing is not None
    assert [bar.end for bar in bars(drawing.panels[""])] == [0.5, -0.25]
    assert drawing.panels[""].x.reach[0] == -0.25
    assert draw_statistics(built, Statistics("Of models", (KAPPA,))) is None


def test_decisions_are_drawn_with_a_plot_for_each_statistic_and_a_bar_for_each_pair() -> None:
    told = [("cohen_kappa", "x~y", 0.5), ("cohen_kappa", "x~z", -0.25), ("cohen_kappa_fix", "x~y", 0.75)]
    told += [("icc_fix", "x~z", 0.125)]
    pairs = [metric("a", name, value, 40, 0.125) | {"slice": "pair", "slice_value": p} for name, p, value in told]
    drawing = draw_decisions(report([metric("a", "score", 0.9), *pairs]), DECISIONS)
    assert [entry.text for entry in drawing.key] == ["x and y", "x and z"]
    kappa, icc = drawing.panels["kappa"], drawing.panels["ICC"]
    assert [(bar.end, bar.ends) for bar in bars(kappa)] == [
        (0.5, (0.375, 0.625)), (0.75, (0.625, 0.875)), (-0.25, (-0.375, -0.125)),
    ]  # fmt: skip
    assert kappa.x.reach[0] == -0.375, "an interval that goes below zero is whole"
    assert texts(icc)[0] == "fix", "nobody knows the other decision's"


def test_of_many_pairs_of_judges_the_first_are_drawn_and_the_rest_counted() -> None:
    pairs = [metric("a", "cohen_kappa", 0.5) | {"slice": "pair", "slice_value": f"x~{k}"} for k in range(9)]
    drawing = draw_decisions(report([metric("a", "score", 0.9), *pairs]), DECISIONS)
    assert len(bars(drawing.panels["kappa"])) == MOST_PAIRS
    assert drawing.notes == (f"Drawn: the first {MOST_PAIRS} of 9 pairs of judges.",)


def test_bars_are_in_seconds_and_say_what_is_unknown() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, latency=1500.0) + guard_metrics("b", 0.8, 0.8))
    figure = draw_bars(built, Bars("", (LATENCY,))).panels[""]
    assert [bar.end for bar in bars(figure)] == [1.5]
    assert texts(figure) == ["a", "b", "1.5 s", "unknown"]


def test_stacked_bars_come_to_a_total_unless_a_part_is_unknown() -> None:
    parts = (Quantity("e1", "timeouts"), Quantity("e2", "other"))
    rows = [metric("a", "e1", 0.1), metric("a", "e2", 0.2), metric("b", "e1", 0.1), metric("b", "e2", None, 0)]
    figure = draw_bars(report(rows), Bars("", parts, stacked=True)).panels[""]
    assert texts(figure) == ["a", "b", "30.0%", "unknown", "10 · 20 %", "10 · – %"]


def test_a_whole_says_its_parts_and_not_that_it_is_one() -> None:
    parts = (Quantity("e1", "low"), Quantity("e2", "high"))
    built = report([metric("a", "e1", 0.3), metric("a", "e2", 0.7)])
    assert texts(draw_bars(built, Bars("", parts, stacked=True)).panels[""]) == ["a", "", "30 · 70 %"]


@pytest.mark.parametrize("half", [0.0, 0.15])
@pytest.mark.parametrize("quantity", [DETECTION, COST])
def test_what_is_below_zero_everywhere_is_drawn(quantity: Quantity, half: float) -> None:
    values = [metric("a", quantity.metric, -0.2, 40, half), metric("a", "acceptance", -0.2, 40, half)]
    built = report(values)
    drawn = draw_bars(built, Bars("", (quantity,))), draw_scatter(built, Scatter("", quantity, ACCEPTANCE))
    bar, point = (drawing.panels[""].x for drawing in drawn)
    assert bar.reach[0] == -0.2 - half < max(bar.ticks)[0] <= bar.reach[1] > 0.0, "a bar ends at zero"
    assert point.reach[0] < -0.2 - half < max(point.ticks)[0]


def test_bars_say_which_end_is_the_good_one() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, cost=1.0, categories={"x": 0.5}))
    assert draw_bars(built, Bars("", (COST,))).panels[""].x.title == "less is better"
    assert not draw_bars(built, Bars("", (replace(COST, best_at_zero=True),))).panels[""].x.title


# Heat maps: models by slices and judges by judges; what is unknown has no colour.


def cells(drawing: Drawing, what: str, panel: str = "") -> list[Any]:
    return [getattr(cell, what) for cell in drawing.panels[panel].marks]


def test_a_matrix_of_judges_is_symmetric_and_empty_on_its_diagonal() -> None:
    drawing = draw_agreement(pairs_of_judges(), AGREEMENT)
    assert list(drawing.panels) == ["a"]
    texts, tips = cells(drawing, "text", "a"), cells(drawing, "tip", "a")
    assert texts == ["", "0.500", "·", "0.500", "", "-0.200", "·", "-0.200", ""]
    assert tips[2] == "x and z: no variation, n = 40"
    assert [(entry.letter, entry.text) for entry in drawing.key[:3]] == [("1", "x"), ("2", "y"), ("3", "z")]


def test_without_pairs_there_is_nothing_to_compare() -> None:
    drawing = draw_agreement(report([metric("a", "score", 0.9)]), AGREEMENT)
    assert not drawing.panels
    assert "no pair of judges" in drawing.notes[0]


def test_a_heat_map_leaves_out_models_without_any_value() -> None:
    rows = guard_metrics("a", 0.9, 0.9, categories={"x": 0.5, "y": None}) + guard_metrics("b", 0.8, 0.8)
    drawing = draw_heat_map(report(rows), HeatMap("", DETECTION, "category"))
    assert cells(drawing, "text") == ["50%", "·"]
    assert cells(drawing, "colour")[1] is None
    assert drawing.notes == ("Left out, as detection by category is unknown: b.",)


def test_a_heat_map_of_a_slice_without_values_says_that_there_are_none() -> None:
    drawing = draw_heat_map(report(guard_metrics("a", 0.9, 0.9)), HeatMap("", DETECTION, "category"))
    assert (drawing.panels, drawing.notes) == ({}, ("no category stands in these results.",))


def test_of_very_many_columns_those_with_the_most_samples_are_drawn_and_the_rest_is_counted() -> None:
    rows = guard_metrics("a", 0.9, 0.9)
    rows += [metric("a", "detection", 0.5, n=k, part=f"c{k:03}") for k in range(1, 101)]
    drawing = draw_heat_map(report(rows), HeatMap("", DETECTION, "category"))
    assert [text for _, text in drawing.panels[""].x.ticks] == [f"c{k:03}" for k in range(101 - MOST_COLUMNS, 101)]
    assert drawing.notes == (f"Drawn: the {MOST_COLUMNS} of 100 with the most samples.",)


def test_colours_say_which_end_is_the_good_one() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, cost=1.0, categories={"x": 0.5}))
    key = draw_heat_map(built, HeatMap("", DETECTION, "category")).key
    assert [entry.text for entry in key] == ["0.0%", "50.0%", "100.0% (better)"]


# Points: the Pareto line, names or letters beside them, scales, and the target.


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


# Lines of confidence: a model that knows how sure it may be lies on the diagonal.


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


# Files of a report are written whole, in a folder that is made, or the folder is named.


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write the report to .*file/report: "):
        write_files(tmp_path / "file" / "report", {"page.html": ""})
    assert (tmp_path / "file").read_text() == "mine"


def test_halves_of_characters_are_written_as_escapes(tmp_path: Path) -> None:
    assert write_files(tmp_path, {"page.html": "a\udcff"}).read_text() == "a\\udcff"


def test_data_is_json_that_every_reader_takes() -> None:
    assert json.loads(as_json({"µ": [1, None]})) == {"µ": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        as_json({"value": float("nan")})
