"""Figures about confidence and judges: lines, matrices and groups show what was measured, and say what is missing."""

from typing import Any

import pytest

from reports.bars import MOST_PAIRS, draw_bars, draw_by_judge, draw_decisions, draw_statistics
from reports.heat_maps import draw_agreement
from reports.reliability import MOST_LINES, draw_reliability
from reports.report import Subject
from reports.tables import agreement_table, by_judge_table, decisions_table, reliability_table, statistics_table
from suites.base.figures import (
    AgreementMatrix,
    Bars,
    ByJudge,
    Decisions,
    Quantity,
    Ranking,
    Reliability,
    Statistics,
    Unit,
)
from tests.reports.samples import SCORE, metric, report

ACCURACY, CONFIDENCE = Quantity("accuracy", "accuracy"), Quantity("mean_confidence", "confidence")
KAPPA, WRONG = Quantity("cohen_kappa", "kappa", Unit.SCORE), Quantity("wrong", "wrong", higher_is_better=False)
RELIABILITY = Reliability("Reliability", ACCURACY, CONFIDENCE, "bin")
AGREEMENT, BY_JUDGE = AgreementMatrix("Agreement", KAPPA, "pair"), ByJudge("Wrong", WRONG)


def by(judge: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"judge": judge} for row in rows]


def tenth(model: str, name: str, confidence: float, accuracy: float, n: int = 40) -> list[dict[str, Any]]:
    return [
        metric(model, of, value, n) | {"slice": "bin", "slice_value": name}
        for of, value in (("mean_confidence", confidence), ("accuracy", accuracy))
    ]


def test_a_reliable_model_lies_on_the_diagonal_and_few_samples_are_hollow() -> None:
    rows = [metric("a", "score", 0.9), *tenth("a", "0.8 to 0.9", 0.85, 0.85), *tenth("a", "0.9 to 1.0", 0.95, 0.5, n=3)]
    plot = draw_reliability(report(rows), RELIABILITY).figure
    assert plot is not None
    diagonal, line = plot.data
    assert (list(diagonal.x), list(diagonal.y)) == ([0, 1], [0, 1])
    assert (list(line.x), list(line.y)) == ([0.85, 0.95], [0.85, 0.5])
    assert list(line.marker.symbol) == ["circle", "circle-open"]
    assert [cell.text for cell in reliability_table(report(rows), RELIABILITY).rows[0]] == ["a", "85.0%", "50.0%"]


def test_of_many_models_the_best_have_lines_and_the_rest_are_counted() -> None:
    rows = []
    for k in range(MOST_LINES + 2):
        rows += [metric(f"m{k}", "score", 1 - k / 10), *tenth(f"m{k}", "all", 0.5, 0.5)]
    drawing = draw_reliability(report(rows), RELIABILITY)
    assert drawing.figure is not None
    assert [line.name for line in drawing.figure.data[1:]] == [f"m{k}" for k in range(MOST_LINES)]
    assert drawing.notes == (f"Drawn: the best {MOST_LINES} of {MOST_LINES + 2} models.",)


def test_models_that_state_no_confidence_are_named() -> None:
    drawing = draw_reliability(report([metric("a", "score", 0.9)]), RELIABILITY)
    assert drawing.figure is None
    assert drawing.notes == ("confidence is unknown for every model.",)


def test_a_matrix_of_judges_is_symmetric_and_empty_on_its_diagonal() -> None:
    pairs = {"x~y": 0.5, "x~z": None, "y~z": -0.2}
    rows = [metric("a", "score", 0.9)]
    rows += [
        metric("a", "cohen_kappa", value) | {"slice": "pair", "slice_value": pair} for pair, value in pairs.items()
    ]
    built = report(by("panel:x+y+z", rows))
    drawing = draw_agreement(built, AGREEMENT)
    assert drawing.figure is not None
    (matrix,) = drawing.figure.data
    assert [list(row) for row in matrix.z] == [[None, 0.5, None], [0.5, None, -0.2], [None, -0.2, None]]
    assert matrix.hovertext[0][2] == "x and z: no variation, n = 40"
    assert list(drawing.panels) == ["a"]
    assert [(entry.letter, entry.text) for entry in drawing.key[:3]] == [("1", "x"), ("2", "y"), ("3", "z")]
    cells = [[cell.text for cell in row] for row in agreement_table(built, AGREEMENT).rows]
    assert cells[0] == ["a", "x", "y", "0.500"]


def test_without_pairs_there_is_nothing_to_compare() -> None:
    drawing = draw_agreement(report([metric("a", "score", 0.9)]), AGREEMENT)
    assert drawing.figure is None
    assert "no pair of judges" in drawing.notes[0]


def test_each_judge_has_a_bar_for_each_model_and_panels_without_a_word_have_none() -> None:
    rows = [row for model in ("a", "b") for row in by("x", [metric(model, "score", 0.9), metric(model, "wrong", 0.1)])]
    rows += by("y", [metric("a", "score", 0.9), metric("a", "wrong", 0.3)])
    rows += by("panel:x+y", [metric("a", "score", 0.9)])
    built = report(rows, figures=(Ranking("", SCORE),))
    plot = draw_by_judge(built, BY_JUDGE).figure
    assert plot is not None
    bars = [trace for trace in plot.data if trace.type == "bar"]
    assert [(bar.name, list(bar.x)) for bar in bars] == [("x", [0.1, 0.1]), ("y", [0.3, None])]
    table = by_judge_table(built, BY_JUDGE)
    assert table.headings == ("model", "x", "y")
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "10.0%", "30.0%"], ["b", "10.0%", "–"]]


@pytest.mark.parametrize("judge", ["panel:somebody/x+somebody/y", "vendor/judge"])
def test_names_in_plots_keep_model_and_judge_apart(judge: str) -> None:
    rows = by(judge, [metric("somebody/a-model-of-some-length", "score", 0.9)])
    plot = draw_bars(report(rows), Bars("", (SCORE,))).figure
    assert plot is not None
    kind = "panel of 2" if judge.startswith("panel") else "judge"
    assert f"a-model-of-some-length · {kind}" in [text.text for text in plot.layout.annotations]


def test_the_two_panels_of_the_same_judges_have_names_of_their_own() -> None:
    assert Subject("a/m", "panel:x+y").brief == "m · panel of 2"
    assert Subject("a/m", "panel:dawid_skene:x+y").brief == "m · panel of 2 (Dawid-Skene)"


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


def test_statistics_of_judges_are_drawn_from_below_zero_where_they_go_there() -> None:
    built = report([*by("x", [metric("a", "cohen_kappa", 0.5)]), *by("y", [metric("a", "cohen_kappa", -0.25)])])
    drawing = draw_statistics(built, Statistics("Firm", (KAPPA,), by_judge=True))
    assert drawing is not None
    assert drawing.figure is not None
    assert list(drawing.figure.data[0].x) == [0.5, -0.25]
    assert drawing.figure.layout.xaxis.range[0] == -0.25
    assert draw_statistics(built, Statistics("Of models", (KAPPA,))) is None


DECISIONS = Decisions(
    "Decisions", (KAPPA, Quantity("icc", "ICC", Unit.SCORE)), (("", "found"), ("_fix", "fix")), "pair"
)


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


def test_decisions_are_drawn_with_a_plot_for_each_statistic_and_a_bar_for_each_pair() -> None:
    told = [("cohen_kappa", "x~y", 0.5), ("cohen_kappa", "x~z", -0.25), ("cohen_kappa_fix", "x~y", 0.75)]
    told += [("icc_fix", "x~z", 0.125)]
    pairs = [metric("a", name, value, 40, 0.125) | {"slice": "pair", "slice_value": p} for name, p, value in told]
    drawing = draw_decisions(report([metric("a", "score", 0.9), *pairs]), DECISIONS)
    assert [entry.text for entry in drawing.key] == ["x and y", "x and z"]
    kappa, icc = drawing.panels["kappa"], drawing.panels["ICC"]
    assert [list(bar.x) for bar in kappa.data] == [[0.5, 0.75], [-0.25, None]]
    assert list(kappa.data[0].error_x.array) == [0.125, 0.125]
    assert kappa.layout.xaxis.range[0] == -0.375, "an interval that goes below zero is whole"
    assert next(text.text for text in icc.layout.annotations) == "fix", "nobody knows the other decision's"


def test_of_many_pairs_of_judges_the_first_are_drawn_and_the_rest_counted() -> None:
    pairs = [metric("a", "cohen_kappa", 0.5) | {"slice": "pair", "slice_value": f"x~{k}"} for k in range(9)]
    drawing = draw_decisions(report([metric("a", "score", 0.9), *pairs]), DECISIONS)
    assert len(drawing.panels["kappa"].data) == MOST_PAIRS
    assert drawing.notes == (f"Drawn: the first {MOST_PAIRS} of 9 pairs of judges.",)


def test_tables_of_judges_are_left_out_where_there_is_one_judge() -> None:
    figures = (DECISIONS, Statistics("Of all", (KAPPA,)))
    assert report(by("x", [metric("a", "score", 0.9)]), figures=figures).shown == ()
