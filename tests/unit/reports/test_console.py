"""The summary in a terminal."""

import io

import pytest
from rich.console import Console

from evalake.reports.console import Summary
from evalake.reports.report import Report
from evalake.sdk.figures import Bars, HeatMap
from tests.unit.reports.samples import DETECTION, SCORE, guard_metrics, metric, report, two_models


def printed(built: Report, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Summary(built, whole=True))
    return out.getvalue()


def test_a_brief_summary_is_the_ranking_and_no_table_is_of_zeros_only() -> None:
    rows = guard_metrics("a", 0.95, 0.9, categories={"shell": 0.75, "upload": None})
    of_zeros = [{**row, "value": 0.0} if row["slice"] == "category" else row for row in rows]
    figures = (*two_models().figures[:1], HeatMap("By category", DETECTION, "category"))
    built = report(rows, figures=figures)
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(Summary(built, whole=False))
    assert "By category" in printed(built)
    assert "By category" not in out.getvalue()
    assert "1 more table: --full" in out.getvalue()
    assert "By category" not in printed(report(of_zeros, figures=figures))


def line(text: str, start: str) -> str:
    return next(found for found in text.splitlines() if start in found)


def test_models_pass_or_fail_the_target_best_first() -> None:
    text = printed(two_models())
    assert "1 of 2 reach the target of at least 85.0% score" in text
    assert "PASS" in line(text, "a/good")
    assert "92.5% [87.5–97.5]" in line(text, "a/good")
    assert "FAIL" in line(text, "b/bad")
    assert text.index("a/good") < text.index("b/bad")


def test_what_rests_on_few_samples_is_marked_and_the_mark_explained() -> None:
    text = printed(two_models())
    assert "25.0%*" in text
    assert "75.0%*" not in text
    assert "* unreliable: fewer than 30 units, or a mean of few large amounts\n" in text
    assert "unreliable" not in printed(report(guard_metrics("a", 0.9, 0.9)))
    panel = [{**row, "judge": "panel:dawid_skene:x+y", "reliable": False} for row in guard_metrics("a", 0.9, 0.9)]
    assert "few large amounts, or few audits of Dawid and Skene\n" in printed(report(panel))


def test_latency_and_cost_have_units_and_the_unknown_is_a_dash() -> None:
    text = printed(report(guard_metrics("a", 0.9, 0.9, latency=1500.0)))
    assert "1.5 s" in text
    assert "cost unknown" in text
    assert "– unknown or undefined" in printed(report(guard_metrics("a", 0.9, None)))


def test_what_a_trivial_model_gets_stands_above_the_numbers() -> None:
    text = printed(report(guard_metrics("a", 0.9, 0.9), trivial={"always block": 0.5, "always allow": 0.25}))
    assert "to beat: a trivial model gets, in score: always block 50.0%, always allow 25.0%" in text
    assert "trivial" not in printed(two_models())


def test_counted_shares_say_of_how_many() -> None:
    rows = guard_metrics("a", 0.95, 0.9, categories={"shell": 0.75, "upload": None})
    text = printed(report(rows, figures=(HeatMap("By category", DETECTION, "category", counted=True),)))
    assert "75.0% (30/40)" in text
    assert text.count("/40)") == 1
    text = printed(report(rows, figures=(Bars("Errors", (DETECTION,), counted=True),)))
    assert "95.0% (38/40)" in text


def test_a_judge_of_all_is_named_once_and_several_at_every_model() -> None:
    judged = [metric("a", "score", 0.5, judge="j/one"), metric("b", "score", 0.4, judge="j/one")]
    text = printed(report(judged))
    assert "judged by j/one" in text
    assert text.count("j/one") == 1
    text = printed(report([*judged, metric("a", "score", 0.5, judge="j/two")]))
    assert "judged by" not in text
    assert "a · j/one" in text


def test_a_target_may_be_an_upper_bound() -> None:
    from evalake.sdk.figures import Quantity, Ranking

    errors = Quantity(SCORE.metric, "errors", higher_is_better=False)
    text = printed(report(guard_metrics("a", 0.1, 0.1), target=0.2, figures=(Ranking("Ranking", errors),)))
    assert "at most 20.0% errors" in text
    assert "PASS" in text


@pytest.mark.parametrize("models", [1, 5, 30])
@pytest.mark.parametrize("width", [60, 100])
def test_it_fits_the_width_with_every_value_readable(models: int, width: int) -> None:
    categories = {f"some-category-{i}": i / 12 for i in range(12)}
    rows = [
        row
        for i in range(models)
        for row in guard_metrics(f"provider/some-model-{i:02}", 0.9, 0.8, latency=10.0, categories=categories)
    ]
    text = printed(report(rows), width)
    assert all(len(found) <= width for found in text.splitlines())
    assert "…" not in text
    assert text.count(f"{3 / 12:.1%}") == models
    assert text.count(f"{11 / 12:.1%}") == models


def test_warnings_come_before_the_numbers() -> None:
    built = report(
        guard_metrics("a", 0.9, 0.9), run={"rows_quarantined": 3}, snapshot={"warnings": ["half of it is missing"]}
    )
    text = printed(built)
    assert text.index("3 rows broke the contract") < text.index("half of it is missing") < text.index("Ranking")


def test_names_cannot_command_the_terminal_or_bring_markup() -> None:
    text = printed(report(guard_metrics("a\x1b[2J[bold]x[/bold]", 0.9, 0.9)))
    assert "\x1b" not in text
    assert "a\\u001b[2J[bold]x[/bold]" in text


def test_long_names_are_whole_and_broken_where_their_parts_end() -> None:
    names = [f"together_ai/meta-llama/Meta-Llama-3.1-{size}B-Instruct-Turbo" for size in (8, 70, 405)]
    text = printed(report([row for name in names for row in guard_metrics(name, 0.9, 0.8)]), 60)
    begun = [word for found in text.splitlines() for word in found.split() if word.startswith("together_ai/")]
    assert begun
    assert all(word.endswith("-") for word in begun)
    for size in (8, 70, 405):
        assert f"{size}B-" in text
    assert "Instruct-Turbo" in text


def test_a_name_with_line_breaks_stays_on_its_line() -> None:
    assert "a\\nb" in line(printed(report(guard_metrics("a\nb", 0.9, 0.9))), "90.0%")
