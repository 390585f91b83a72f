"""Ranking: differences in the quantity that ranks, adjusted over all pairs, and who shares a letter."""

import re
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Mean, Quantile, Rate
from evalake.reports.ranking import Comparison, Standing, compare_all, letters, stand

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
    assert [s.letters for s in stand({"a": 0.95, "b": 0.35}, [by_score])] == ["a", "b"]
    assert [s.letters for s in stand({"a": 0.95, "b": 0.35}, [by_verdict])] == ["a", "a"]


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


def test_models_without_a_sample_in_common_share_a_letter() -> None:
    apart = frame({"a": [1.0] * 20, "b": [0.0] * 20}).with_columns(
        sample_hash=pl.concat_str("model", "sample_hash"), cluster=pl.concat_str("model", "cluster")
    )
    assert compare_all(apart, SCORE) == {}
    assert [s.letters for s in stand({"a": 1.0, "b": 0.0}, [])] == ["a", "a"]


def significant(first: str, second: str, difference: float = 0.2) -> Comparison:
    return Comparison(first, second, 100, difference, None, None, 0.001, 0.01)


def test_whatever_pairs_are_apart_the_letters_say_exactly_which() -> None:
    random = np.random.default_rng(7)
    for models in ([f"m{n}" for n in range(size)] for size in (1, 2, 5, 9, 30) for _ in range(40)):
        share = random.random()
        apart = {frozenset(pair) for pair in combinations(models, 2) if random.random() < share}
        sets = {model: set(re.findall(r"[a-zA-Z]\d*", text)) for model, text in letters(models, apart).items()}
        assert all(sets.values())
        for pair in combinations(models, 2):
            assert (not sets[pair[0]] & sets[pair[1]]) == (frozenset(pair) in apart)


def test_of_equal_models_hardly_any_are_apart_and_of_unequal_ones_nearly_all() -> None:
    random = np.random.default_rng(11)
    equal, unequal = [], []
    for _ in range(60):
        hard = random.beta(2, 1, 60)
        equal.append({f"m{n}": (random.random(60) < hard).astype(float).tolist() for n in range(5)})
        good, poor = ((random.random(60) < rate).astype(float).tolist() for rate in (0.95, 0.4))
        unequal.append({"good": good, **dict(list(equal[-1].items())[:2]), "poor": poor})
    apart = sum(len({s.letters for s in standings}) > 1 for standings in _stood(*equal))
    of_each = [{s.model: set(s.letters or "") for s in standings} for standings in _stood(*unequal)]
    assert apart <= 1.1 * 0.05 * 60 + 2 * (0.05 * 0.95 * 60) ** 0.5
    assert sum(not of["good"] & of["poor"] for of in of_each) >= 0.95 * 60


def _stood(*families: dict[str, list[float]]) -> list[tuple[Standing, ...]]:
    """Rank the models of each family, all compared at once: each family is a judge."""
    answers = pl.concat([frame(scores, judge=f"{number:03}") for number, scores in enumerate(families)])
    compared = compare_all(answers, SCORE)
    means = ({model: sum(of) / len(of) for model, of in scores.items()} for scores in families)
    return [stand(values, compared[f"{number:03}"]) for number, values in enumerate(means)]


def test_many_models_can_be_apart() -> None:
    scores = {f"m{n:02}": [1.0 - (n >= 8)] * 30 for n in range(16)}
    (standings,) = _stood(scores)
    assert {s.letters for s in standings} == {"a", "b"}


def test_equal_values_share_a_rank_and_models_without_a_value_have_none() -> None:
    standings = stand({"z": None, "a": 0.5, "b": 0.5, "c": 0.4, "y": None}, [])
    assert [(s.model, s.rank) for s in standings] == [("a", 1), ("b", 1), ("c", 3), ("y", None), ("z", None)]
    assert [s.letters for s in standings[3:]] == [None, None]


def test_where_less_is_better_a_larger_value_is_worse() -> None:
    standings = stand({"a": 0.5, "b": 0.4}, [significant("a", "b", 0.1)], higher_is_better=False)
    assert [(s.model, s.letters) for s in standings] == [("b", "a"), ("a", "b")]


def test_without_a_test_the_interval_decides_in_the_family_of_all_pairs() -> None:
    slow = {"a": 100.0, "b": 130.0, "c": 130.5}
    random = np.random.default_rng(6)
    answers = frame({model: (middle + random.normal(0, 8, 200)).tolist() for model, middle in slow.items()})
    compared = compare_all(answers, Metric("p50", Quantile(pl.col("score"), 0.5)))[None]
    assert [c.p for c in compared] == [None] * 3
    assert [s.letters for s in stand(slow, compared, higher_is_better=False)] == ["a", "b", "b"]
