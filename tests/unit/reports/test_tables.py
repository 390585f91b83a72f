"""Tables, facts, values and wording of reports."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evalake.reports.ranking import Comparison
from evalake.reports.report import Subject, Value, facts, headline, target_line, trivial_line, warnings
from evalake.reports.tables import (
    KINDS,
    Cell,
    agreement_table,
    by_judge_table,
    comparisons_table,
    decisions_table,
    measured,
    ranking_table,
    reliability_table,
    statistics_table,
    value_lines,
)
from evalake.reports.wording import interval, number, short_names, visible
from evalake.sdk.figures import Answers, Figure, HeatMap, Quantity, Statistics, Unit
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
from tests.unit.reports.samples import DETECTION, FIGURES, answers, guard_metrics, metric, report, two_models

# Figures as tables: their headings, cells, and what has none.


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


# What a report says about its run: the headline, what must be known first, and where the numbers come from.


def told(**run: Any) -> dict[str, str]:
    return dict(facts(report(guard_metrics("a", 0.9, 0.9), run=run)))


def test_the_headline_counts_and_says_who_reaches_the_target() -> None:
    assert headline(two_models()) == [
        "run run-1, completed · snapshot 555555555555",
        "80 samples · 2 models",
        "calls: 150 made, 10 from the ledger, 0 failed · cost unknown",
        "1 of 2 reach the target of at least 85.0% score",
        "a model exactly at the target fails by chance in up to 2.5 %; of 2, at most 0.05 on average, and at least one "
        "in up to 5 %",
    ]
    assert "1 sample · 1 model" in headline(report(guard_metrics("a", 0.9, 0.9), run={"samples": 1}))


def test_without_a_target_or_trivial_models_nothing_is_said_of_them() -> None:
    built = report(guard_metrics("a", 0.9, 0.9), target=None)
    assert (target_line(built), trivial_line(built), len(headline(built))) == (None, None, 3)
    assert trivial_line(report(guard_metrics("a", 0.9, 0.9), trivial={"always yes": 0.5}, figures=())) is None


def test_what_is_undecided_and_unknown_is_counted() -> None:
    rows = guard_metrics("a", 0.88, 0.88) + guard_metrics("b", 0.9, None)
    line = target_line(report(rows))
    assert line is not None
    assert line.startswith("0 of 2 reach the target of at least 85.0% score; 1 undecided (")
    assert line.endswith("; 1 unknown")


def test_a_message_that_tells_of_quarantine_is_enough() -> None:
    rows = guard_metrics("a", 0.9, 0.9)
    assert warnings(report(rows)) == []
    (only,) = warnings(report(rows, run={"rows_quarantined": 1}))
    assert only.startswith("1 row broke the contract")
    said = {"rows_quarantined": 3, "message": "3 rows are in quarantine"}
    assert warnings(report(rows, run=said)) == ["3 rows are in quarantine"]


def test_where_prices_are_unknown_what_is_known_is_the_least() -> None:
    unpriced = {"cost_usd": None, "cost_usd_known": 0.5, "calls_unpriced": 3, "calls_bought": 1200}
    assert told(**unpriced)["cost"].startswith("paid: at least $0.50, 3 of 1,200 calls unpriced; avoided")
    assert told(cost_usd=0.25, **{"calls_unpriced": 0})["cost"].startswith("paid: $0.25; ")


def test_every_column_of_the_run_that_explains_its_numbers_is_told_and_an_unknown_is_a_dash() -> None:
    known = told()
    assert (known["origin"], known["judges"], known["ended"]) == ("models were called", "none", "–")
    assert known["tokens"] == "1,000 in, – out"
    assert known["rows"] == "160 landed, 0 already present, 0 quarantined"
    assert (known["table versions"], known["parameters"]) == ("guard_results: 3", "limit: 10")
    assert known["started"] == "2025-01-01 00:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{}", "none"),
        ("no JSON", "no JSON"),
        ("[1]", "[1]"),
        ('{"a": [1], "b": "x"}', "a: [1]\nb: x"),
        ("[" * 10_000, None),
    ],
)
def test_parameters_that_are_no_object_are_shown_as_they_are(text: str, shown: str | None) -> None:
    known = told(parameters=text)["parameters"]
    assert known == shown or (shown is None and known.startswith("[["))


def test_what_others_wrote_cannot_command_the_terminal() -> None:
    assert told(models=["a\x1b[2J"])["models"] == "a\\u001b[2J"
    assert told(parameters='{"a\\u001b": "\\u001b"}')["parameters"] == "a\\u001b: \\u001b"


# Metric values as lines for a terminal: what stands in a line, in which order, and that it fits.


def value(metric: str, number: float | None, **fields: Any) -> dict[str, Any]:
    known = number is not None
    return {
        "model": "a/model", "judge": None, "metric": metric, "tier": 2, "slice": "all", "slice_value": "",
        "value": number, "n": 40, "units": 40, "se": 0.1 if known else None, "reliable": True,
        "ci_low": number - 0.1 if known else None, "ci_high": number + 0.1 if known else None,  # type: ignore[operator]
    } | fields  # fmt: skip


def rows(*values: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(values, schema_overrides={"judge": pl.String, "value": pl.Float64, "units": pl.Int64})


def lines(*values: dict[str, Any], width: int = 100) -> list[str]:
    return [line.strip() for line in "\n".join(value_lines(rows(*values), width)).split("\n")]


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({"value": None, "ci_low": None, "ci_high": None, "se": None}, ["–", "40", "40"]),
        ({"value": 0.5, "reliable": False}, ["0.500*", "[0.400", "0.600]", "40", "40"]),
        ({"value": 1234.0, "se": None, "ci_low": None, "ci_high": None, "units": None}, ["1,234", "40"]),
        ({"value": 12.34, "ci_low": 10.0, "ci_high": 15.0}, ["12.3", "[10.0", "15.0]", "40", "40"]),
        ({"value": 2.5e8, "ci_low": None, "ci_high": None}, ["2.5e+08", "40", "40"]),
        ({"value": 0.5, "n": 12_000}, ["0.500", "[0.400", "0.600]", "12,000", "40"]),
    ],
)
def test_numbers_have_as_many_decimals_as_their_size_needs(fields: dict[str, Any], numbers: list[str]) -> None:
    assert lines(value("m", 0.5) | fields)[-1].split()[1:] == numbers


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["m" * 200, "名" * 90, "a\nb\x1b[31m" * 20], ids=("long", "wide", "control"))
def test_no_line_is_wider_than_asked_whatever_the_names_are(width: int, name: str) -> None:
    of_one = (value("short", 0.5, model=name, judge=name), value("short", 0.5, model=name, judge=name, slice="x"))
    of_two = (value("short", 0.5, model=name), value("short", 0.5), value("short", 0.5, slice="x", slice_value=name))
    for several in (of_one, of_two):
        printed = "\n".join(value_lines(rows(*several), width)).split("\n")
        assert all(cell_len(line) <= width for line in printed)
        assert not any("\x1b" in line for line in printed)


# How values and names are written.


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.8988, Unit.SHARE, "89.9%"),
        (1.0, Unit.SHARE, "100.0%"),
        (0.4517, Unit.SCORE, "0.452"),
        (54.25, Unit.POINTS, "54.2"),
        (1234, Unit.COUNT, "1,234"),
        (2.5, Unit.COUNT, "2.5"),
        (0.0, Unit.US_DOLLARS, "$0.00"),
        (0.000123, Unit.US_DOLLARS, "$0.000123"),
        (0.2, Unit.US_DOLLARS, "$0.20"),
        (1234.5, Unit.US_DOLLARS, "$1,234.50"),
        (16665.2, Unit.MILLISECONDS, "16.7 s"),
        (250.0, Unit.MILLISECONDS, "250 ms"),
        (0.02, Unit.MILLISECONDS, "20.0 µs"),
        (0.0, Unit.MILLISECONDS, "0.0 µs"),
        (None, Unit.SHARE, "–"),
        (float("nan"), Unit.US_DOLLARS, "–"),
        (float("inf"), Unit.COUNT, "–"),
    ],
)
def test_numbers_by_unit(value: float | None, unit: Unit, text: str) -> None:
    assert number(value, unit) == text


def test_an_interval_takes_the_scale_of_its_value() -> None:
    assert interval(900.0, 1200.0, Unit.MILLISECONDS, 1100.0) == "[0.9–1.2]"
    assert interval(0.1, None, Unit.SHARE, 0.2) == ""


def test_long_text_says_what_is_missing() -> None:
    assert visible("x" * 5000, 10) == "x" * 10 + "… (4,990 more characters)"


@given(st.lists(st.text(max_size=80), max_size=12))
def test_short_names_are_short_and_different(names: list[str]) -> None:
    short = short_names(names)
    assert len(short) == len(names)
    assert len(set(short)) == len(names)
    assert all(len(name) <= 26 + len(" (12)") and "\n" not in name for name in short)


def test_a_number_given_to_a_name_never_makes_it_another_name() -> None:
    assert len(set(short_names(["a", "a", "a (2)"]))) == 3


def test_wide_characters_take_two_cells_of_a_short_name() -> None:
    assert short_names(["名" * 13, "名" * 14]) == ["名" * 13, "名" * 8 + "…" + "名" * 4]


def test_names_keep_what_tells_them_apart() -> None:
    assert short_names(["openai/gpt-5.1", "provider/with-a-long-name/model-7"]) == ["openai/gpt-5.1", "model-7"]


# What a report says of a run: names, values, decisions and mistakes, and which figures say something.


def test_the_two_panels_of_the_same_judges_have_names_of_their_own() -> None:
    assert Subject("a/m", "panel:x+y").brief == "m · panel of 2"
    assert Subject("a/m", "panel:dawid_skene:x+y").brief == "m · panel of 2 (Dawid-Skene)"


def test_tables_of_judges_are_left_out_where_there_is_one_judge() -> None:
    figures = (DECISIONS, Statistics("Of all", (KAPPA,)))
    assert report(by("x", [metric("a", "score", 0.9)]), figures=figures).shown == ()


def test_a_slice_of_one_value_says_something_only_where_it_is_wanted() -> None:
    figures = tuple(HeatMap("", DETECTION, "category", of_several=each) for each in (False, True))
    one = report(guard_metrics("a", 0.9, 0.9, categories={"x": 0.5}), figures=figures)
    two = report(guard_metrics("a", 0.9, 0.9, categories={"x": 0.5, "y": 0.5}), figures=figures)
    assert (one.shown, two.shown) == (figures[:1], figures)
    assert two.slice_values(DETECTION, "category") == ["x", "y"]


def test_mistakes_are_those_that_are_not_correct_or_what_the_suite_takes_for_one() -> None:
    rows = guard_metrics("a", 0.5, 0.5) + guard_metrics("b", 0.9, 0.9)
    results = pl.concat([answers("a", 2, 4), answers("b", 4, 4)])
    ((subject, count, wrong),) = report(rows, results).mistakes()
    assert (subject, count, wrong["sample"].to_list()) == (Subject("a"), 2, ["malicious-2", "malicious-3"])
    blocked = Answers(sample=("sample",), mistake=pl.col("verdict") == "BLOCK")
    found = {subject.model: count for subject, count, _ in report(rows, results, answers=blocked).mistakes()}
    assert found == {"a": 2, "b": 4}
    assert list(report(rows).mistakes()) == []
