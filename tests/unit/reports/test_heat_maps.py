"""Heat maps: models by slices and judges by judges; what is unknown has no colour."""

from typing import Any

from evalake.reports.axes import Drawing
from evalake.reports.heat_maps import MOST_COLUMNS, draw_agreement, draw_heat_map
from evalake.sdk.figures import HeatMap
from tests.unit.reports.judged import AGREEMENT, pairs_of_judges
from tests.unit.reports.samples import DETECTION, guard_metrics, metric, report


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
