"""Rank bands: differences in the quantity that ranks, adjusted over all pairs, and who shares a band."""

import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Mean, Rate
from evalake.reports.ranking import Comparison, compare_all, stand

SCORE = Metric("score", Mean(pl.col("score"), low=0, high=1))
CORRECT = Metric("accuracy", Rate(pl.col("correct")))


def frame(scores: dict[str, list[float]], repeats: int = 1, judge: str | None = None) -> pl.DataFrame:
    """Answers of models to the same samples, all of them right, with these scores."""
    rows = [
        {"model": model, "sample_hash": f"s{n}", "cluster": f"s{n}", "score": score, "correct": True, "judge": judge}
        for model, of_model in scores.items()
        for n, score in enumerate(of_model)
        for _ in range(repeats)
    ]
    return pl.DataFrame(rows, schema_overrides={"judge": pl.String})


def test_models_are_compared_in_what_ranks_not_in_their_verdicts() -> None:
    answers = frame({"a": [0.9, 1.0] * 10, "b": [0.3, 0.4] * 10})
    ((by_score,), (by_verdict,)) = (compare_all(answers, metric)[None] for metric in (SCORE, CORRECT))
    assert by_score.difference == pytest.approx(0.6)
    assert [s.band for s in stand({"a": 0.95, "b": 0.35}, [by_score])] == [1, 2]
    assert [s.band for s in stand({"a": 0.95, "b": 0.35}, [by_verdict])] == [1, 1]


def test_repeats_are_no_evidence() -> None:
    scores = {"a": [1.0] * 6, "b": [0.0] * 3 + [1.0] * 3}
    once, often = (compare_all(frame(scores, repeats), SCORE)[None][0] for repeats in (1, 5))
    assert (often.p, often.units) == (once.p, once.units)
    assert once.p == pytest.approx(0.25)


def test_p_values_are_adjusted_over_the_pairs_of_a_judge() -> None:
    scores = {"a": [1.0] * 12, "b": [1.0] * 5 + [0.0] * 7, "c": [0.5] * 12}
    answers = pl.concat([frame(scores, judge="j1"), frame({"a": [1.0] * 12, "b": [0.0] * 12}, judge="j2")])
    compared = compare_all(answers, SCORE)
    assert [(c.first, c.second) for c in compared["j1"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    expected = multipletests([c.p for c in compared["j1"]], method="holm")[1].tolist()
    assert [c.p_adjusted for c in compared["j1"]] == pytest.approx(expected)
    (alone,) = compared["j2"]
    assert alone.p_adjusted == alone.p


def test_models_without_a_sample_in_common_share_a_band() -> None:
    apart = frame({"a": [1.0] * 20, "b": [0.0] * 20}).with_columns(
        sample_hash=pl.concat_str("model", "sample_hash"), cluster=pl.concat_str("model", "cluster")
    )
    assert compare_all(apart, SCORE) == {}
    assert [s.band for s in stand({"a": 1.0, "b": 0.0}, [])] == [1, 1]


def significant(first: str, second: str, difference: float = 0.2) -> Comparison:
    return Comparison(first, second, 100, difference, None, None, 0.001, 0.01)


def insignificant(first: str, second: str) -> Comparison:
    return Comparison(first, second, 100, 0.01, None, None, 0.4, 1.0)


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


def test_where_less_is_better_a_larger_value_is_worse() -> None:
    standings = stand({"a": 0.5, "b": 0.4}, [significant("a", "b", 0.1)], higher_is_better=False)
    assert [(s.model, s.band) for s in standings] == [("b", 1), ("a", 2)]


@pytest.mark.parametrize(("low", "bands"), [(0.01, [1, 2]), (-0.01, [1, 1]), (None, [1, 1])])
def test_without_a_test_the_interval_decides(low: float | None, bands: list[int]) -> None:
    compared = Comparison("a", "b", 100, 0.1, low, None if low is None else 0.3, None, None)
    assert [s.band for s in stand({"a": 0.5, "b": 0.4}, [compared])] == bands
