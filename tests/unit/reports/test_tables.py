"""Figures as tables: their headings, cells, and what has none."""

from dataclasses import replace

import pytest

from evalake.reports.kinds import KINDS
from evalake.reports.ranking import Comparison
from evalake.reports.report import Value
from evalake.reports.tables import (
    Cell,
    agreement_table,
    by_judge_table,
    comparisons_table,
    decisions_table,
    measured,
    ranking_table,
    reliability_table,
    statistics_table,
)
from evalake.sdk.figures import Figure, Quantity, Statistics, Unit
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
from tests.unit.reports.samples import FIGURES, guard_metrics, metric, report, two_models


def test_statistics_leave_out_models_and_columns_without_a_value() -> None:
    rows = [metric("a", "score", 0.9), metric("b", "score", 0.8), metric("a", "cohen_kappa", 0.5)]
    unknown = Quantity("nowhere", "nowhere")
    table = statistics_table(report(rows), Statistics("Of all", (KAPPA, unknown)))
    assert table.headings == ("model", "kappa")
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "0.500"]]


def test_statistics_of_a_judge_stand_once_for_all_its_models() -> None:
    rows = [metric(model, "cohen_kappa", 0.5) for model in "ab"]
    built = report([*by("x", rows), *by("y", [metric("a", "cohen_kappa", 0.25)])])
    table = statistics_table(built, Statistics("Firm", (KAPPA,), by_judge=True))
    assert [[cell.text for cell in row] for row in table.rows] == [["x", "0.500"], ["y", "0.250"]]


def test_decisions_of_a_pair_are_told_once_over_all_models() -> None:
    told = [("cohen_kappa", 0.5), ("icc_fix", 0.75)]
    rows = [metric(model, "score", 0.9) for model in "ab"]
    rows += [
        metric(model, name, value) | {"slice": "pair", "slice_value": "x~y"} for model in "ab" for name, value in told
    ]
    built = report(by("panel:x+y", rows), figures=(DECISIONS,))
    assert built.shown == (DECISIONS,)
    cells = [[cell.text for cell in row] for row in decisions_table(built, DECISIONS).rows]
    assert cells == [["found", "x", "y", "0.500", "–"], ["fix", "x", "y", "–", "0.750"]]


def test_each_tenth_of_confidence_is_a_column() -> None:
    rows = [metric("a", "score", 0.9), *tenth("a", "0.8 to 0.9", 0.85, 0.85), *tenth("a", "0.9 to 1.0", 0.95, 0.5, n=3)]
    assert [cell.text for cell in reliability_table(report(rows), RELIABILITY).rows[0]] == ["a", "85.0%", "50.0%"]


def test_each_pair_of_judges_is_a_row() -> None:
    cells = [[cell.text for cell in row] for row in agreement_table(pairs_of_judges(), AGREEMENT).rows]
    assert cells[0] == ["a", "x", "y", "0.500"]
    assert [row[1:3] for row in cells] == [["x", "y"], ["x", "z"], ["y", "z"]]


def test_each_judge_is_a_column_and_a_panel_without_a_word_is_none() -> None:
    table = by_judge_table(of_two_judges(), BY_JUDGE)
    assert table.headings == ("model", "x", "y")
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "10.0%", "30.0%"], ["b", "10.0%", "–"]]


def test_the_ranking_has_a_column_for_the_target_and_for_letters_where_there_are_any() -> None:
    built = two_models()
    table = ranking_table(built, FIGURES[0])  # type: ignore[arg-type]
    assert table.headings == ("#", "model", "≥ 85.0%", "letters", "units", "score", "detection", "acceptance")
    assert [(row[0].text, row[1].text, row[2].mood, row[3].text) for row in table.rows] == [
        ("1", "a/good", "pass", "a"),
        ("2", "b/bad", "fail", "b"),
    ]
    plain = ranking_table(report(guard_metrics("a", 0.9, None), target=None), FIGURES[0])  # type: ignore[arg-type]
    assert plain.headings == ("#", "model", "units", "score", "detection", "acceptance")
    assert [cell.text for cell in plain.rows[0]] == ["–", "a", "–", "–", "90.0%", "–"]


def test_a_cell_knows_of_how_many_it_is_and_whether_that_is_enough() -> None:
    assert measured(Value(0.5, 40, 0.25, 0.75, True), Unit.SHARE) == Cell("50.0%", "[25.0–75.0]", 40)
    assert measured(Value(0.5, 4), Unit.SHARE) == Cell("50.0%", n=4, doubtful=True)
    assert measured(Value(), Unit.SHARE) == Cell("–", n=0)
    assert measured(Value(1.0, 1), Unit.SHARE) == Cell("100%", n=1, doubtful=True)  # one answer has no decimals
    assert measured(Value(0.25, 1200, reliable=True), Unit.SHARE, as_counted=True).text == "25.0% (300/1,200)"
    assert measured(Value(None, 40), Unit.SHARE, as_counted=True).text == "–"


def test_differences_have_a_sign_and_those_of_shares_are_in_points_of_a_percent() -> None:
    table = comparisons_table(two_models())
    assert table.caption == "Paired differences in score"
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["a/good − b/bad", "+32.5 pp [+20.0 to +44.0]", "80", "< 0.0001", "< 0.0001"]
    ]
    unknown = replace(two_models(), comparisons={"j": (Comparison("a", "b", 3, None, None, None, None, 0.25),)})
    assert [cell.text for cell in comparisons_table(unknown).rows[0]] == ["a − b · j", "–", "3", "–", "0.2500"]


@pytest.mark.parametrize("figure", FIGURES[1:], ids=lambda figure: figure.title)
def test_whatever_a_model_is_called_its_row_is_one_line(figure: Figure) -> None:
    rows = guard_metrics("a\nb\x1b[31m", 0.9, 0.9, cost=1.0, latency=5.0, categories={"x\ny": 0.5})
    table = KINDS[type(figure)].tabulate(report(rows), figure)
    (row,) = table.rows
    assert len(row) == len(table.headings)
    assert not [text for text in (*table.headings, *(cell.text for cell in row)) if "\n" in text or "\x1b" in text]
