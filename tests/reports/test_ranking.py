"""Rank bands: the paired test, Holm's adjustment, and who shares a band."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from contracts.errors import MetricError
from reports.ranking import Comparison, compare_all, exact_p, holm, stand

counts = st.integers(0, 60)


@settings(deadline=None, max_examples=20)  # statsmodels collects garbage each time, of all that a test run has loaded
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)


def test_holm_of_no_comparisons_is_none() -> None:
    assert holm([]) == []


@settings(deadline=None)
@given(gains=counts, losses=counts, ties=counts)
def test_with_one_label_it_is_the_exact_mcnemar_test(gains: int, losses: int, ties: int) -> None:
    size = max(gains + losses + ties, 1)
    table = [[ties, gains], [losses, 0]]
    expected = mcnemar(table, exact=True).pvalue if gains + losses else 1.0
    assert exact_p([gains], [losses], [size]) == pytest.approx(expected)


few = st.integers(0, 2)


@settings(deadline=None)
@given(strata=st.lists(st.tuples(few, few, st.integers(0, 5)).filter(sum), min_size=2, max_size=3))
def test_with_more_labels_it_is_the_share_of_coin_tosses_as_extreme(strata: list[tuple[int, int, int]]) -> None:
    gains, losses, _ = zip(*strata, strict=True)
    sizes = [b + c + t for b, c, t in strata]
    common = int(np.lcm.reduce(sizes))
    steps = [common // n for n, b, c in zip(sizes, gains, losses, strict=True) for _ in range(b + c)]
    observed = abs(sum((b - c) * (common // n) for b, c, n in zip(gains, losses, sizes, strict=True)))
    tosses = np.array(list(itertools.product((-1, 1), repeat=len(steps))))
    sums = tosses @ np.array(steps, dtype=np.int64) if steps else np.zeros(1)
    assert exact_p(gains, losses, sizes) == pytest.approx(np.mean(np.abs(sums) >= observed))


def test_large_disagreements_are_exact_and_not_zero_by_underflow() -> None:
    assert exact_p([20_000, 0], [19_000, 10_000], [50_000, 49_999]) < 1e-12
    assert exact_p([500], [0], [50_000]) == pytest.approx(2 * 0.5**500)


def frame(right: dict[str, dict[str, str]]) -> pl.DataFrame:
    """Model to label to answers, a character a sample: + right, - wrong, blank not answered."""
    return pl.DataFrame(
        [
            {"model": model, "sample": f"{label}-{i}", "label": label, "correct": mark == "+"}
            for model, labels in right.items()
            for label, marks in labels.items()
            for i, mark in enumerate(marks)
            if mark != " "
        ]
    )


def test_the_difference_is_that_of_balanced_accuracies_on_the_samples_in_common() -> None:
    answers = frame({"a": {"x": "++++ ", "y": "+-"}, "b": {"x": "+--- ", "y": "++"}, "c": {"x": "    +"}})
    of = {(c.first, c.second): c for c in compare_all(answers)}
    assert of["a", "b"].difference == pytest.approx((3 / 4 - 1 / 2) / 2)
    assert of["a", "b"].samples == 6
    assert of["a", "b"].p == pytest.approx(exact_p([3, 0], [0, 1], [4, 2]))
    assert of["a", "c"].difference is None, "no sample of either label is shared"
    assert of["a", "c"].p_adjusted is None


def test_blocking_everything_and_allowing_everything_cannot_be_told_apart() -> None:
    answers = frame({"block": {"x": "+" * 300, "y": "-" * 100}, "allow": {"x": "-" * 300, "y": "+" * 100}})
    (compared,) = compare_all(answers)
    assert compared.difference == 0
    assert compared.p == 1


def test_rows_without_a_label_are_one_stratum_and_rows_without_an_outcome_are_left_out() -> None:
    answers = frame({"a": {"x": "+++++++"}, "b": {"x": "-------"}}).with_columns(label=pl.lit(None, dtype=pl.String))
    unknown = answers.with_columns(correct=pl.when(pl.col("sample") != "x-0").then("correct"))
    assert compare_all(answers)[0].p == pytest.approx(2 * 0.5**7)
    assert compare_all(unknown)[0].p == pytest.approx(2 * 0.5**6)


def test_two_answers_for_one_sample_are_refused() -> None:
    answers = frame({"a": {"x": "++"}, "b": {"x": "--"}})
    with pytest.raises(MetricError, match="two answers"):
        compare_all(pl.concat([answers, answers.head(1)]))


def test_p_values_are_adjusted_over_all_pairs() -> None:
    answers = frame({"a": {"x": "+" * 20}, "b": {"x": "+" * 12 + "-" * 8}, "c": {"x": "-" * 20}})
    compared = compare_all(answers)
    assert [c.p_adjusted for c in compared] == pytest.approx(
        multipletests([c.p for c in compared], method="holm")[1].tolist()
    )


def significant(first: str, second: str, difference: float = 0.2) -> Comparison:
    return Comparison(first, second, 100, difference, 0.001, 0.01)


def insignificant(first: str, second: str) -> Comparison:
    return Comparison(first, second, 100, 0.01, 0.4, 1.0)


def test_models_share_a_band_until_one_is_significantly_worse_than_its_best() -> None:
    values = {"d": 0.70, "a": 0.90, "c": 0.85, "b": 0.88}
    compared = [insignificant("a", "b"), significant("a", "c"), insignificant("b", "c"), insignificant("c", "d")]
    standings = stand(values, compared)
    assert [(s.model, s.rank, s.band) for s in standings] == [("a", 1, 1), ("b", 2, 1), ("c", 3, 2), ("d", 4, 2)]


def test_a_difference_in_favour_of_the_lower_ranked_does_not_part_them() -> None:
    assert [s.band for s in stand({"a": 0.9, "b": 0.8}, [significant("a", "b", -0.2)])] == [1, 1]
    assert [s.band for s in stand({"a": 0.9, "b": 0.8}, [significant("b", "a", -0.2)])] == [1, 2]


def test_equal_values_share_a_rank_and_models_without_a_value_have_none() -> None:
    standings = stand({"z": None, "a": 0.5, "b": 0.5, "c": 0.4, "y": None}, [])
    assert [(s.model, s.rank) for s in standings] == [("a", 1), ("b", 1), ("c", 3), ("y", None), ("z", None)]
    assert [s.band for s in standings[3:]] == [None, None]


def test_less_may_be_better() -> None:
    assert [s.model for s in stand({"a": 0.5, "b": 0.4}, [], higher_is_better=False)] == ["b", "a"]
