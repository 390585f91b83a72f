"""What all drawings share: axes, ends, positions, and names made safe."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.reports.axes import TELEPHONE, hover, positions, quantity_axis, reach_of
from evalake.reports.bars import draw_bars
from evalake.reports.report import Subject, Value
from evalake.reports.scatter import LONG_SCALE
from evalake.reports.svg import CHARACTER, as_svg
from evalake.sdk.figures import Bars
from tests.unit.reports.judged import by
from tests.unit.reports.samples import COST, DETECTION, SCORE, guard_metrics, metric, report


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
