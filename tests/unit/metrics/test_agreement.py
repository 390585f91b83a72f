"""Agreement of raters and decisions."""

from typing import Any

import krippendorff
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from evalake.metrics import agreement
from evalake.metrics.agreement import PAIRS, WEIGHED_PAIRS, agreement_table
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Rate
from tests.unit.metrics.frames import estimate, estimates, one_group

# Agreement against scikit-learn, statsmodels, krippendorff, SciPy, and the published example of ICC.

BANDS = ("red", "yellow", "green")
a, b, c = (pl.col(name) for name in "abc")
answer = st.sampled_from(BANDS) | st.none()
SEVERAL: dict[str, Any] = {"min_size": 5, "max_size": 15}  # of which each example is, for they are measured at once
panels = st.lists(st.lists(st.tuples(answer, answer, answer), min_size=1, max_size=40), **SEVERAL)
Panel = list[tuple[str | None, str | None, str | None]]


def frame_of(panel: Panel) -> pl.DataFrame:
    return one_group(**{name: pl.Series([row[i] for row in panel], dtype=pl.String) for i, name in enumerate("abc")})


@pytest.mark.slow
@given(panels)
@settings(max_examples=15)
def test_two_raters_agree_as_scikit_learn_says(panels: list[Panel]) -> None:
    frames = [frame_of(panel) for panel in panels]
    shares, kappas = (
        estimates(frames, agreement.percent_agreement(a, b)),
        estimates(frames, agreement.cohen_kappa(a, b, BANDS)),
    )
    for panel, share, kappa in zip(panels, shares, kappas, strict=True):
        both = [(x, y) for x, y, _ in panel if x is not None and y is not None]
        assert share["n"] == kappa["n"] == len(both)
        assert share["value"] == (pytest.approx(np.mean([x == y for x, y in both])) if both else None)
        if len({answer for pair in both for answer in pair}) < 2:
            assert kappa["value"] is None
        else:
            assert kappa["value"] == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)), abs=1e-9)


@pytest.mark.slow
@given(panels)
@settings(max_examples=15)
def test_a_panel_agrees_as_statsmodels_and_krippendorff_say(panels: list[Panel]) -> None:
    frames, counts = [frame_of(panel) for panel in panels], agreement.votes([a, b, c], BANDS)
    kappas, alphas = (
        estimates(frames, agreement.fleiss_kappa(counts, 3)),
        estimates(frames, agreement.krippendorff_alpha(counts)),
    )
    for panel, fleiss, alpha in zip(panels, kappas, alphas, strict=True):
        complete = [row for row in panel if None not in row]
        paired = [row for row in panel if row.count(None) < 2]
        assert (fleiss["n"], alpha["n"]) == (len(complete), len(paired))

        if len({x for row in complete for x in row}) < 2:
            assert fleiss["value"] is None
        else:
            table = [[row.count(band) for band in BANDS] for row in complete]
            assert fleiss["value"] == pytest.approx(statsmodels_fleiss(np.array(table)), abs=1e-9)

        if len({x for row in paired for x in row if x is not None}) < 2:
            assert alpha["value"] is None
        else:
            codes = [[BANDS.index(row[i]) if row[i] is not None else np.nan for row in paired] for i in range(3)]
            expected = krippendorff.alpha(np.array(codes), level_of_measurement="nominal", value_domain=[0, 1, 2])
            assert alpha["value"] == pytest.approx(expected, abs=1e-9)


def test_conditions_are_categories_too() -> None:
    frame = one_group(a=[True, True, False, None], b=[True, False, False, True])
    expected = cohen_kappa_score([True, True, False], [True, False, False])
    assert estimate(frame, agreement.cohen_kappa(a, b, (True, False)))["value"] == pytest.approx(expected)


def test_agreement_has_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, 200)
    second = np.where(rng.random(200) < 0.7, first, rng.integers(0, 3, 200))
    frame = one_group(a=first, b=second)
    got = estimate(frame, agreement.cohen_kappa(a, b, (0, 1, 2)))
    assert got["ci_low"] < got["value"] < got["ci_high"]
    assert 0.02 < got["se"] < 0.08


def test_icc_is_that_of_the_published_example() -> None:
    # six targets and four judges of Shrout and Fleiss (1979), table 2: ICC(2,1) = .29
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    frame = one_group(**{f"j{i}": ratings[:, i] for i in range(4)})
    got = estimate(frame, agreement.icc_2_1([pl.col(f"j{i}") for i in range(4)]))
    assert got["value"] == pytest.approx(0.2898, abs=5e-5)
    assert got["n"] == 6


@given(st.integers(0, 10**6), st.integers(3, 30), st.integers(2, 5))
@settings(max_examples=50)
def test_icc_is_that_of_an_analysis_of_variance(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = np.round(rng.random((n, 1)) * 2 + rng.random((n, k)) + rng.random(k), 2)
    grand, rows, columns = ratings.mean(), ratings.mean(axis=1), ratings.mean(axis=0)
    ms_rows = k * ((rows - grand) ** 2).sum() / (n - 1)
    ms_columns = n * ((columns - grand) ** 2).sum() / (k - 1)
    residual = ratings - rows[:, None] - columns + grand
    ms_error = (residual**2).sum() / ((n - 1) * (k - 1))
    expected = (ms_rows - ms_error) / (ms_rows + (k - 1) * ms_error + k * (ms_columns - ms_error) / n)
    frame = one_group(**{f"j{i}": ratings[:, i] for i in range(k)})
    got = estimate(frame, agreement.icc_2_1([pl.col(f"j{i}") for i in range(k)]))
    assert got["value"] == pytest.approx(expected, abs=1e-9)


def test_correlation_without_variation_is_undefined_and_keeps_its_samples() -> None:
    frame = one_group(a=[0.9] * 5, b=[0.1, 0.2, 0.3, 0.4, None])
    for estimator in (agreement.pearson(a, b), agreement.icc_2_1([a, a])):
        got = estimate(frame, estimator)
        assert got["value"] is None
        assert got["n"] in (4, 5)
        assert got["ci_low"] is None


score = st.integers(0, 100) | st.none()
Scores = list[tuple[int | None, int | None]]


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(score, score), min_size=1, max_size=50), **SEVERAL))
@settings(max_examples=15)
def test_correlation_is_that_of_scipy(several: list[Scores]) -> None:
    frames = [
        one_group(**{name: pl.Series([s[i] for s in scores], dtype=pl.Int64) for i, name in enumerate("ab")})
        for scores in several
    ]
    for scores, got in zip(several, estimates(frames, agreement.pearson(a, b)), strict=True):
        both = np.array([s for s in scores if None not in s], dtype=float).reshape(-1, 2)
        assert got["n"] == len(both)
        if len(both) < 2 or np.ptp(both[:, 0]) == 0 or np.ptp(both[:, 1]) == 0:
            assert got["value"] is None
        else:
            assert got["value"] == pytest.approx(stats.pearsonr(both[:, 0], both[:, 1]).statistic, abs=1e-9)


WEIGHT = pl.col("weight")
Weighed = list[tuple[str, str, float]]
weighed = st.lists(
    st.lists(
        st.tuples(st.sampled_from(BANDS), st.sampled_from(BANDS), st.sampled_from([1.0, 2.5, 40.0])),
        min_size=2,
        max_size=40,
    ),
    **SEVERAL,
)


@pytest.mark.slow
@given(weighed)
@settings(max_examples=10)
def test_samples_that_stand_for_others_count_as_scikit_learn_weighs_them(several: list[Weighed]) -> None:
    columns = [[list(column) for column in zip(*rows, strict=True)] for rows in several]
    frames = [one_group(a=first, b=second, weight=weight) for first, second, weight in columns]
    shares = estimates(frames, agreement.percent_agreement(a, b, WEIGHT))
    kappas = estimates(frames, agreement.cohen_kappa(a, b, BANDS, WEIGHT))
    for (first, second, weight), share, kappa in zip(columns, shares, kappas, strict=True):
        agreeing = [x == y for x, y in zip(first, second, strict=True)]
        assert share["value"] == pytest.approx(np.average(agreeing, weights=weight))
        assert 0 <= share["ci_low"] <= share["value"] <= share["ci_high"] <= 1
        assert share["n"] == len(weight)
        if len({*first, *second}) > 1:
            expected = cohen_kappa_score(first, second, sample_weight=weight)
            assert kappa["value"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@given(weighed)
@settings(max_examples=10)
def test_scores_agree_as_scikit_learn_s_quadratic_kappa_says(several: list[Weighed]) -> None:
    columns = [
        ([BANDS.index(row[0]) for row in rows], [BANDS.index(row[1]) for row in rows], [row[2] for row in rows])
        for rows in several
    ]
    frames = [one_group(a=first, b=second, weight=weight) for first, second, weight in columns]
    kappas = estimates(frames, agreement.quadratic_kappa(a, b, WEIGHT))
    differences = estimates(frames, agreement.mean_absolute_difference(a, b, WEIGHT, most=2))
    for (first, second, weight), found, apart in zip(columns, kappas, differences, strict=True):
        if len({*first, *second}) > 1:
            expected = cohen_kappa_score(first, second, weights="quadratic", sample_weight=weight)
            assert found["value"] == pytest.approx(expected, abs=1e-9)
        assert apart["value"] == pytest.approx(np.average(np.abs(np.subtract(first, second)), weights=weight))
        assert 0 <= apart["ci_low"] <= apart["value"] <= apart["ci_high"] <= 2


@pytest.mark.parametrize("weight", [1.0, 7.0])
def test_samples_that_all_weigh_the_same_are_as_without_weights(weight: float) -> None:
    answers = {"a": ["x", "x", "y", "y", "x", "y", "x", None], "b": ["x", "y", "y", "y", "x", "x", "x", "x"]}
    frame = one_group(**answers, weight=[weight] * 8)
    words = ("x", "y")
    alike: list[tuple[Estimator, Estimator]] = [
        (agreement.percent_agreement(a, b, WEIGHT), agreement.percent_agreement(a, b)),
        (agreement.cohen_kappa(a, b, words, WEIGHT), agreement.cohen_kappa(a, b, words)),
        (agreement.gwet_ac1(a, b, words, WEIGHT), agreement.gwet_ac1(a, b, words)),
    ]
    for weighted, plain in alike:
        assert estimate(frame, weighted) == estimate(frame, plain)
    assert isinstance(agreement.percent_agreement(a, b), Rate)


@pytest.mark.slow
def test_the_interval_of_a_weighted_share_covers_what_the_plain_one_misses() -> None:
    """Of 2,000 samples, those that disagree are drawn four times as often: the plain share is far too low."""
    rng = np.random.default_rng(13)
    agrees = np.arange(2000) >= 178
    chance = np.where(agrees, 1.0, 4.0)
    chance *= 150 / chance.sum()
    draws = [rng.random(2000) < chance for _ in range(300)]
    frames = [one_group(ok=agrees[drawn], weight=1 / chance[drawn]) for drawn in draws]
    found = estimates(frames, agreement.percent_agreement(pl.col("ok"), pl.lit(value=True), WEIGHT))
    covered = sum(each["ci_low"] <= 0.911 <= each["ci_high"] for each in found)
    assert np.mean([each["value"] for each in found]) == pytest.approx(0.911, abs=0.004)
    assert np.mean([agrees[drawn].mean() for drawn in draws]) < 0.75
    assert 0.93 <= covered / 300 <= 0.995


# Agreement by decision: how often two say the same, and what is left of it beyond chance.


def pairs(decision: str, words: list[tuple[str, str]], judge: str = "j") -> pl.DataFrame:
    rows = [(judge, decision, f"{decision} {n}", one, two, one == two) for n, (one, two) in enumerate(words)]
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def test_words_agree_so_often_and_so_much_beyond_chance() -> None:
    words = [("yes", "yes")] * 4 + [("no", "no")] * 4 + [("yes", "no"), ("no", "yes")]
    (row,) = agreement_table(pairs("found", words), ["found"]).to_dicts()
    assert (row["agreement"], row["n"], row["units"]) == (0.8, 10, 10)
    assert row["kappa"] == pytest.approx(0.6)
    assert row["ci_low"] < 0.8 < row["ci_high"]
    assert row["difference"] is None


def test_where_all_say_one_word_nothing_is_known_beyond_chance() -> None:
    (row,) = agreement_table(pairs("found", [("yes", "yes")] * 5), ["found"]).to_dicts()
    assert (row["agreement"], row["kappa"], row["ac1"]) == (1.0, None, None)


def test_rows_are_by_judge_then_in_the_order_of_decisions_that_there_are() -> None:
    every = pl.concat([pairs("a", [("x", "y")], "k"), pairs("b", [("x", "x")]), pairs("a", [("x", "x")])])
    table = agreement_table(every, ["b", "none", "a"])
    assert table.select("judge", "decision").rows() == [("j", "b"), ("j", "a"), ("k", "a")]


def test_pairs_that_stand_for_more_count_for_more_and_scores_have_a_distance() -> None:
    rows = [
        ("j", "points", "1", None, None, True, 3.0, 10.0, 10.0),
        ("j", "points", "2", None, None, False, 1.0, 10.0, 6.0),
    ]
    (row,) = agreement_table(pl.DataFrame(rows, schema=WEIGHED_PAIRS, orient="row"), ["points"]).to_dicts()
    assert (row["agreement"], row["difference"], row["n"]) == (0.75, pytest.approx(1.0), 2)
