"""What all drawings share: axes, ends, positions, and names made safe."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.reports.axes import (
    CHARACTER,
    TELEPHONE,
    hover,
    positions,
    quantity_axis,
    reach_of,
    safe,
)
from evalake.reports.bars import draw_bars
from evalake.reports.report import Subject, Value
from evalake.reports.scatter import LONG_SCALE
from evalake.sdk.figures import Bars
from tests.unit.reports.judged import by
from tests.unit.reports.samples import COST, DETECTION, SCORE, guard_metrics, metric, report


@pytest.mark.parametrize("judge", ["panel:somebody/x+somebody/y", "vendor/judge"])
def test_names_in_plots_keep_model_and_judge_apart(judge: str) -> None:
    rows = by(judge, [metric("somebody/a-model-of-some-length", "score", 0.9)])
    plot = draw_bars(report(rows), Bars("", (SCORE,))).figure
    assert plot is not None
    kind = "panel of 2" if judge.startswith("panel") else "judge"
    assert f"a-model-of-some-length · {kind}" in [text.text for text in plot.layout.annotations]


def test_shares_are_labelled_up_to_one() -> None:
    figure = draw_bars(report(guard_metrics("a", 1.0, 1.0)), Bars("", (DETECTION,))).figure
    assert figure is not None
    assert max(figure.layout.xaxis.tickvals) == pytest.approx(1)


def test_an_axis_has_room_about_what_it_shows_and_money_and_time_do_not_begin_far_below_zero() -> None:
    assert reach_of(DETECTION, [Value(0.0), Value(1.0)]) == (-0.05, 1.05)
    low, high = reach_of(COST, [Value(1.0, 1, 0.5, 2.0)], also=4.0)
    assert low > -0.1 * high
    assert low < 0.5
    assert high > 4.0
    assert reach_of(COST, [Value(0.0), Value(1.0), Value(100.0)], logarithmic=True) == pytest.approx((-0.24, 2.24))


def test_a_hover_text_has_no_tags_but_ours_and_says_of_how_many() -> None:
    text = hover(Subject("<b>a", "j&k"), [(DETECTION, Value(0.5, 1200))], part="<i>")
    assert text == "<b>&lt;b&gt;a · j&amp;k</b><br>&lt;i&gt;<br>detection: 50.0%, n = 1,200 (unreliable)"
    assert safe("a\x1b<i>") == "a\\u001b&lt;i&gt;"


@given(st.floats(1e-4, 1e6), st.floats(LONG_SCALE, 1e6))
def test_marks_of_an_axis_of_money_have_room_for_their_labels(low: float, times: float) -> None:
    reach = (math.log10(low), math.log10(low * times))
    axis = quantity_axis(COST, reach, logarithmic=True)
    at = positions(axis["tickvals"], reach, logarithmic=True)
    longest = max(map(len, axis["ticktext"]))
    assert all(TELEPHONE * (b - a) >= longest * CHARACTER for a, b in pairwise(at))
