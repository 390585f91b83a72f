"""What a report says of a run: names, values, decisions and mistakes, and which figures say something."""

import polars as pl
import pytest

from evalake.reports.report import Subject, Value
from evalake.sdk.figures import Answers, HeatMap, Statistics
from tests.unit.reports.judged import AGREEMENT, DECISIONS, KAPPA, by, pairs_of_judges
from tests.unit.reports.samples import DETECTION, answers, guard_metrics, metric, report


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
    ((subject, wrong),) = report(rows, results).mistakes()
    assert (subject, wrong["sample"].to_list()) == (Subject("a"), ["malicious-2", "malicious-3"])
    blocked = Answers(sample=("sample",), mistake=pl.col("verdict") == "BLOCK")
    found = {subject.model: wrong.height for subject, wrong in report(rows, results, answers=blocked).mistakes()}
    assert found == {"a": 2, "b": 4}
    assert list(report(rows).mistakes()) == []


def test_agreement_is_of_each_pair_and_pooled_once_over_models() -> None:
    built = pairs_of_judges()
    ((subject, pairs),) = built.agreement(AGREEMENT).items()
    assert (subject.model, [*pairs]) == ("a", [("x", "y"), ("x", "z"), ("y", "z")])
    assert built.pooled(KAPPA, "pair", "x~y").value == pytest.approx(0.5)
    assert built.pooled(KAPPA, "pair", "x~nobody") == Value()
