"""What a report says about its run: the headline, what must be known first, and where the numbers come from."""

from typing import Any

import pytest

from evalake.reports.report import facts, headline, target_line, trivial_line, warnings
from tests.unit.reports.samples import guard_metrics, report, two_models


def told(**run: Any) -> dict[str, str]:
    return dict(facts(report(guard_metrics("a", 0.9, 0.9), run=run)))


def test_the_headline_counts_and_says_who_reaches_the_target() -> None:
    assert headline(two_models()) == [
        "run run-1, completed · snapshot 555555555555",
        "80 samples · 2 models",
        "calls: 150 made, 10 from the ledger, 0 failed · cost unknown",
        "1 of 2 reach the target of at least 85.0% score",
        "of models exactly at the target each fails in up to 2.5 % by chance, 0.05 of 2 on average, any of them in up "
        "to 5 %",
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
