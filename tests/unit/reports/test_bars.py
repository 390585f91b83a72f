"""Bars say what they come to and what is unknown: of models, judges and pairs of judges."""

from dataclasses import replace

from evalake.reports.bars import MOST_PAIRS, draw_bars, draw_by_judge, draw_decisions, draw_statistics
from evalake.reports.svg import Bar, Figure
from evalake.sdk.figures import Bars, Quantity, Statistics
from tests.unit.reports.judged import BY_JUDGE, DECISIONS, KAPPA, by, of_two_judges
from tests.unit.reports.samples import COST, LATENCY, guard_metrics, metric, report


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
    figure = draw_bars(report([metric("a", "e1", 0.3), metric("a", "e2", 0.7)]), Bars("", parts, stacked=True)).panels[
        ""
    ]
    assert texts(figure) == ["a", "", "30 · 70 %"]


def test_bars_say_which_end_is_the_good_one() -> None:
    built = report(guard_metrics("a", 0.9, 0.9, cost=1.0, categories={"x": 0.5}))
    assert draw_bars(built, Bars("", (COST,))).panels[""].x.title == "less is better"
    assert not draw_bars(built, Bars("", (replace(COST, best_at_zero=True),))).panels[""].x.title
