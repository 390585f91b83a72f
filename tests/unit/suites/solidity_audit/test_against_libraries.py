"""Metrics and agreement as declared here, against independent libraries, on thousands of random groups at once."""

import statistics
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import polars as pl
import pytest
import scipy.stats
import sklearn.metrics as sk
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss
from statsmodels.stats.proportion import proportion_confint

from evalake.metrics.compute import Metric, measure, values
from evalake.suites.solidity_audit.cross_row_metrics import judge_agreement, rank_stability
from evalake.suites.solidity_audit.metrics import metrics, sui
from evalake.suites.solidity_audit.panels.rows import panel_name
from evalake.suites.solidity_audit.truth import DEFAULTS, calibration_unstated, sui_weight_sets
from tests.unit.suites.solidity_audit.support import SAFE, frame_of, judgement, line

pytestmark = pytest.mark.slow

GROUPS = 500
JUDGES = ("a", "b", "c")
SCORES = ("rcir", "ava", "fsv")


def random_results(groups: int, seed: int) -> pl.DataFrame:
    """Rows of many models, from one to forty each: one-sided, constant and empty ones among them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 41, groups)
    model = np.repeat(np.arange(groups), sizes)
    n = len(model)

    def often(kinds: tuple[float, ...]) -> Any:
        return np.repeat(rng.choice(kinds, groups), sizes)

    vulnerable = rng.random(n) < often((0.0, 0.3, 0.6, 1.0))
    said = np.where(rng.random(n) < often((0.0, 0.1, 0.4, 1.0)), ~vulnerable, vulnerable)
    correct = said == vulnerable
    found = vulnerable & (rng.random(n) < often((0.0, 0.5, 1.0)))
    confidence = np.where(rng.random(n) < 0.5, rng.integers(0, 11, n) / 10, np.round(rng.random(n), 3))
    known = rng.random(n) < often((0.0, 0.7, 1.0))
    template = frame_of([line(0, SAFE, judgement(said=True))])
    scores = {
        s: [float(v) if f else None for v, f in zip(rng.integers(0, 21, n) / 20, found, strict=True)] for s in SCORES
    }
    drawn = {
        "model": [f"m{number:05d}" for number in model],
        "is_vulnerable": vulnerable,
        "said_vulnerable": said,
        "detection_correct": correct,
        "target_found": found,
        "confidence": [float(c) if k else None for c, k in zip(confidence, known, strict=True)],
        "cluster": [str(i) for i in range(n)],
        **scores,
    }
    base = template.drop(*drawn)
    return pl.DataFrame(drawn, strict=False).join(base, how="cross")


@pytest.fixture(scope="module")
def results() -> pl.DataFrame:
    return random_results(GROUPS, 7)


@pytest.fixture(scope="module")
def measured(results: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """By model and metric. Two draws: only values, and intervals that follow from formulas, are compared."""
    declared = [replace(metric, slices=("all",)) for metric in metrics(DEFAULTS)]
    rows = measure(results, declared)
    return {(row["model"], row["metric"]): row for row in rows.iter_rows(named=True)}


def check(
    results: pl.DataFrame, measured: dict[tuple[str, str], dict[str, Any]], name: str, reference: Callable[..., Any]
) -> None:
    """The metric equals the reference in every group; both are undefined in the same ones."""
    check_values(measured, name, {str(model): reference(rows) for (model,), rows in results.group_by("model")})


def check_values(measured: dict[tuple[str, str], dict[str, Any]], name: str, by_model: Mapping[str, Any]) -> None:
    """The metric equals the value given for every group; both are undefined in the same ones."""
    assert {model for model, metric in measured if metric == name} == set(by_model)
    defined = 0
    for model, expected in by_model.items():
        value = measured[model, name]["value"]
        if expected is None or np.isnan(expected):
            assert value is None, (model, name)
        else:
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), (model, name)
            defined += 1
    assert defined > GROUPS / 10


def truth_and_answer(rows: pl.DataFrame) -> tuple[Any, Any]:
    return rows["is_vulnerable"].to_numpy(), rows["said_vulnerable"].to_numpy()


def test_accuracy_agrees_with_scikit_learn(results: Any, measured: Any) -> None:
    check(results, measured, "accuracy", lambda rows: sk.accuracy_score(*truth_and_answer(rows)))


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("precision", partial(sk.precision_score, zero_division=np.nan)),
        ("recall", partial(sk.recall_score, zero_division=np.nan)),
        ("f1", partial(sk.fbeta_score, beta=1, zero_division=np.nan)),
        ("f2", partial(sk.fbeta_score, beta=2, zero_division=np.nan)),
    ],
)
def test_detection_agrees_with_scikit_learn(results: Any, measured: Any, name: str, score: Any) -> None:
    """All groups are scored at once: each is a label, which rows of other groups neither have nor are given."""
    models, group = np.unique(results["model"].to_numpy(), return_inverse=True)
    labels = [np.zeros((len(group), len(models)), dtype=np.bool_) for _ in range(2)]
    for label, said in zip(labels, truth_and_answer(results), strict=True):
        label[np.arange(len(group)), group] = said
    check_values(measured, name, dict(zip(models.tolist(), score(*labels, average=None), strict=True)))


def confident(rows: pl.DataFrame) -> tuple[Any, Any]:
    known = rows.drop_nulls("confidence")
    return known["confidence"].to_numpy(), known["detection_correct"].to_numpy().astype(float)


def test_brier_score_agrees_with_scikit_learn(results: Any, measured: Any) -> None:
    def reference(rows: pl.DataFrame) -> Any:
        confidence, correct = confident(rows)
        return sk.brier_score_loss(correct, confidence, labels=[0, 1]) if len(confidence) else None

    check(results, measured, "brier_score", reference)


@pytest.mark.parametrize(("name", "combine"), [("ece", "mean"), ("mce", "max")])
def test_calibration_agrees_with_binning_by_scipy(results: Any, measured: Any, name: str, combine: str) -> None:
    """SciPy's bins are [lo, hi); of -confidence they are (lo, hi], but for 0, which is put where it belongs."""

    def reference(rows: pl.DataFrame) -> Any:
        confidence, correct = confident(rows)
        if not len(confidence):
            return None
        place = -np.where(confidence == 0, 1e-12, confidence)
        edges = -np.arange(10, -1, -1) / 10
        binned = scipy.stats.binned_statistic(place, [correct, confidence], "mean", bins=edges)
        count = np.bincount(binned.binnumber - 1, minlength=10)[:10]
        gaps = np.abs(binned.statistic[0] - binned.statistic[1])
        if combine == "max":
            return np.nanmax(gaps)
        return np.nansum(gaps * count) / count.sum()

    check(results, measured, name, reference)


@pytest.mark.parametrize("score", SCORES)
def test_reasoning_agrees_with_scipy_and_the_standard_library(results: Any, measured: Any, score: str) -> None:
    def values(rows: pl.DataFrame) -> Any:
        return rows[score].drop_nulls().to_numpy()

    def mean(rows: pl.DataFrame) -> Any:
        return scipy.stats.tmean(values(rows)) if len(values(rows)) else None

    def spread(rows: pl.DataFrame) -> Any:
        return statistics.pstdev(values(rows).tolist()) if len(values(rows)) else None

    check(results, measured, f"mean_{score}", mean)
    check(results, measured, f"std_{score}", spread)


def test_intervals_of_rates_agree_with_statsmodels(results: Any, measured: Any) -> None:
    for (model,), rows in results.group_by("model"):
        row = measured[str(model), "target_detection_rate"]
        vulnerable = rows.filter("is_vulnerable")
        if vulnerable.height:
            low, high = proportion_confint(vulnerable["target_found"].sum(), vulnerable.height, method="wilson")
            assert (row["ci_low"], row["ci_high"]) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
        else:
            assert (row["value"], row["n"]) == (None, 0)


def test_rank_stability_agrees_with_scipy(results: Any) -> None:
    sets = sui_weight_sets(DEFAULTS)
    declared = [Metric(name, sui(weights, calibration_unstated(DEFAULTS))) for name, weights in sets.items()]
    confident = results.filter(pl.col("confidence").is_not_null().any().over("model"))
    known = values(confident, declared, ("model", "judge")).drop_nulls(list(sets))
    expected = min(scipy.stats.spearmanr(known[a], known[b])[0] for a, b in combinations(sets, 2))
    stability = rank_stability(confident, DEFAULTS)
    assert stability.height == known.height > GROUPS / 10
    assert stability["value"].to_list() == pytest.approx([expected] * known.height, abs=1e-9)


def random_panels(models: int, seed: int) -> pl.DataFrame:
    """Answers and scores of three judges on a dozen samples for each of many models, some answers missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in range(models):
        truth = rng.random(12) < rng.choice([0.0, 0.5, 0.9, 1.0])
        noise, gone = rng.choice([0.0, 0.2, 0.5]), rng.choice([0.0, 0.2])
        for judge in JUDGES:
            for sample in range(12):
                missing = rng.random() < gone
                answer = bool(truth[sample] ^ (rng.random() < noise))
                score = None if missing else float(rng.integers(0, 5) / 4)
                rows.append((f"m{model:04d}", judge, f"s{sample}", None if missing else answer, score))
            rows.append((f"m{model:04d}", panel_name(JUDGES), f"{judge}", None, None))
    frame = pl.DataFrame(rows, schema=["model", "judge", "sample_hash", "target_found", "rcir"], orient="row")
    return frame.with_columns(
        subject_error=pl.lit(None, pl.String),
        said_vulnerable=pl.lit(None, pl.Boolean),
        type_match=pl.lit(None, pl.String),
        location_function_hit=pl.lit(None, pl.Boolean),
        bonus_valid_findings=pl.lit(None, pl.Int64),
        confidence=pl.lit(None, pl.Float64),
        prompt_type=pl.lit("direct"),
        replicate=0,
        cluster=pl.col("sample_hash"),
        ava=pl.col("rcir"),
        fsv=pl.col("rcir"),
    )


def intraclass(scores: Any) -> float:
    """ICC(2,1) by the mean squares of a two-way analysis of variance, as statistics textbooks lay it out."""
    n, k = scores.shape
    grand = scores.mean()
    rows = k * ((scores.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    columns = n * ((scores.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    residual = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0, keepdims=True) + grand
    error = (residual**2).sum() / ((n - 1) * (k - 1))
    return float((rows - error) / (rows + (k - 1) * error + k * (columns - error) / n))


def test_agreement_of_judges_agrees_with_statsmodels_krippendorff_and_scipy() -> None:
    frame = random_panels(40, 3)
    found = {
        (row["model"], row["slice_value"], row["metric"]): row["value"]
        for row in judge_agreement(frame).iter_rows(named=True)
        if row["slice"] != "judge_pair_pooled"  # of all models together, beside each
    }
    judged = frame.filter(pl.col("judge").is_in(JUDGES))
    compared = 0
    for (model,), rows in judged.group_by("model"):
        wide = rows.pivot("judge", index="sample_hash", values=["target_found", "rcir"])
        answers = wide.select([f"target_found_{judge}" for judge in JUDGES]).cast(pl.Float64).to_numpy()
        scores = wide.select([f"rcir_{judge}" for judge in JUDGES]).to_numpy().astype(float)
        whole = ~np.isnan(answers).any(axis=1)
        expected: dict[tuple[str, str], Any] = {}
        if whole.any():
            counts = np.stack([(answers[whole] == value).sum(axis=1) for value in (0, 1)], axis=1)
            varied = (counts.sum(axis=0) > 0).all()
            expected["", "fleiss_kappa"] = statsmodels_fleiss(counts) if varied else None
            expected["", "unanimous_rate"] = (counts.max(axis=1) == 3).mean()
            expected["", "icc_2_1_rcir"] = (
                intraclass(scores[whole]) if whole.sum() > 1 and np.ptp(scores[whole]) else None
            )
            for (i, a), (j, b) in combinations(enumerate(JUDGES), 2):
                expected[f"{a}~{b}", "cohen_kappa"] = pair_kappa(answers[whole][:, i], answers[whole][:, j])
        paired = answers[(~np.isnan(answers)).sum(axis=1) >= 2]
        if len(np.unique(paired[~np.isnan(paired)])) > 1:
            expected["", "krippendorff_alpha"] = krippendorff.alpha(answers.T, level_of_measurement="nominal")
        both = ~np.isnan(scores[:, :2]).any(axis=1)
        if both.sum() > 1 and np.ptp(scores[both, 0]) and np.ptp(scores[both, 1]):
            expected["a~b", "pearson_rcir"] = scipy.stats.pearsonr(scores[both, 0], scores[both, 1])[0]
        for i, j in ((0, 1), (0, 2), (1, 2)):
            both = ~np.isnan(scores[:, [i, j]]).any(axis=1)
            pair = scores[both][:, [i, j]]
            expected[f"{JUDGES[i]}~{JUDGES[j]}", "icc_2_1_rcir"] = (
                intraclass(pair) if both.sum() > 1 and np.ptp(pair) else None
            )
        for (value, name), number in expected.items():
            ours = found[str(model), value, name]
            assert ours == (None if number is None else pytest.approx(number, rel=1e-9, abs=1e-9)), (model, value, name)
            compared += 1
    assert compared > 300


def pair_kappa(first: Any, second: Any) -> float | None:
    """Cohen's kappa by two libraries; None where chance alone would agree."""
    if len({*first.tolist(), *second.tolist()}) < 2:
        return None
    table = sk.confusion_matrix(first, second, labels=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        other = float(cohens_kappa(table, return_results=False))
    kappa = float(sk.cohen_kappa_score(first, second, labels=[0, 1]))
    assert kappa == pytest.approx(other, abs=1e-12)
    return kappa
