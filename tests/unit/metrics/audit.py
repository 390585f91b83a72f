"""A judged suite's metrics declared with the engine: composites of confusion counts, findings, scores, confidence."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from evalake.metrics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha, percent_agreement, votes
from evalake.metrics.calibration import ece, mce
from evalake.metrics.composite import Composite, Parts, mean_defined
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Count, Mean, Rate, Ratio, Total
from evalake.metrics.intervals import Array
from evalake.metrics.variance import population_std

vulnerable = pl.col("ground_truth_vulnerable")
correct = pl.col("detection_correct")
found = pl.col("target_found")
confidence = pl.col("confidence").cast(pl.Float64)
tp, fn = vulnerable & correct, vulnerable & ~correct
tn, fp = ~vulnerable & correct, ~vulnerable & ~correct
matched = vulnerable & found
invalid, total = pl.col("invalid_findings"), pl.col("total_findings")
SCORES = ("rcir", "ava", "fsv")


def score(name: str) -> pl.Expr:
    return pl.when(found).then(pl.col(f"{name}_score")).cast(pl.Float64)


def f_measure(recall_weight: int) -> Ratio:
    hits, missed = (1 + recall_weight) * tp.cast(pl.Int64), recall_weight * fn.cast(pl.Int64)
    return Ratio(hits, hits + fp.cast(pl.Int64) + missed, rows=pl.lit(True), heaviest=1 + recall_weight)


def reasoning(parts: Parts) -> Array:
    means = mean_defined(np.stack([parts[name] for name in SCORES], axis=-1))
    return np.where(parts["found"] == 0, 0.0, means)


def true_understanding(parts: Parts) -> Array:
    return parts["found"] * reasoning(parts) * (1 - parts["invalid"])


def lucky_guess_indicator(parts: Parts) -> Array:
    return parts["accuracy"] - parts["found"]


def sui(parts: Parts) -> Array:
    values = [parts["f2"], parts["found"], parts["valid"], reasoning(parts), 1 - parts["ece"]]
    table = np.stack(values, axis=-1)
    weights = np.where(np.isnan(table), 0.0, np.array([0.25, 0.25, 0.15, 0.25, 0.10]))
    return np.asarray((np.nan_to_num(table) * weights).sum(axis=-1) / weights.sum(axis=-1))


scores = {name: Mean(score(name), low=0, high=1) for name in SCORES}
detected = Rate(found, vulnerable)
understanding = {"found": detected, "invalid": Rate(invalid, total), **scores}
index = {
    "f2": f_measure(4),
    "found": detected,
    "valid": Rate(pl.col("valid_findings"), total),
    "ece": ece(confidence, correct),
    **scores,
}

ESTIMATORS = {
    **{name: Count(of) for name, of in (("tp", tp), ("tn", tn), ("fp", fp), ("fn", fn))},
    "accuracy": Rate(correct),
    "precision": Rate(tp, tp | fp),
    "recall": Rate(tp, vulnerable),
    "fpr": Rate(fp, ~vulnerable),
    "fnr": Rate(fn, vulnerable),
    "f1": f_measure(1),
    "f2": f_measure(4),
    "target_detection_rate": Rate(found, vulnerable),
    "lucky_guess_rate": Rate(pl.col("lucky_guess"), tp),
    "extra_valid_rate": Rate(pl.col("valid_findings") > found.cast(pl.Int64)),
    "target_found_count": Count(matched),
    "lucky_guess_count": Count(pl.col("lucky_guess")),
    "finding_precision": Rate(pl.col("valid_findings"), total),
    "invalid_rate": Rate(invalid, total),
    "hallucination_rate": Rate(pl.col("hallucinated_findings"), total),
    "over_flagging_score": Mean(invalid, low=0),
    "avg_findings_per_sample": Mean(total, low=0),
    **{name: Total(pl.col(name)) for name in ("total_findings", "valid_findings", "invalid_findings")},
    "hallucinated_findings": Total(pl.col("hallucinated_findings")),
    **{f"mean_{name}": scores[name] for name in SCORES},
    **{f"std_{name}": population_std(score(name), low=0, high=1) for name in SCORES},
    "exact_match_rate": Rate(pl.col("type_match") == "exact", matched),
    "semantic_match_rate": Rate(pl.col("type_match").is_in(["exact", "semantic"]), matched),
    "partial_match_rate": Rate(pl.col("type_match") == "partial", matched),
    "ece": ece(confidence, correct),
    "mce": mce(confidence, correct),
    "brier_score": Mean((confidence - correct.cast(pl.Float64)) ** 2, low=0, high=1),
    "overconfidence_rate": Rate(~correct, confidence > 0.8),
    "underconfidence_rate": Rate(correct, confidence < 0.5),
    "sui": Composite(sui, index),
    "true_understanding_score": Composite(true_understanding, understanding),
    "lucky_guess_indicator": Composite(lucky_guess_indicator, {"accuracy": Rate(correct), "found": detected}, low=-1),
}
AUDIT_METRICS = tuple(Metric(name, estimator, slices=("all", "prompt_type")) for name, estimator in ESTIMATORS.items())


def panel_metrics(judges: Sequence[str]) -> tuple[Metric, ...]:
    """Agreement of the judges on rows with one column of answers per judge."""
    columns = [pl.col(judge) for judge in judges]
    counts = votes(columns, (True, False))
    unanimous = pl.any_horizontal(*[count == len(judges) for count in counts])
    answered = pl.all_horizontal(*[column.is_not_null() for column in columns])
    complete = {judge: pl.when(answered).then(pl.col(judge)) for judge in judges}
    pairs = [(a, b, complete[a], complete[b]) for a, b in combinations(judges, 2)]
    return (
        Metric("fleiss_kappa", fleiss_kappa(counts, len(judges))),
        Metric("krippendorff_alpha", krippendorff_alpha(counts)),
        Metric("unanimous_rate", Rate(unanimous, answered)),
        *(Metric(f"cohen_kappa {a}~{b}", cohen_kappa(x, y, (True, False))) for a, b, x, y in pairs),
        *(Metric(f"percent_agreement {a}~{b}", percent_agreement(x, y)) for a, b, x, y in pairs),
    )
