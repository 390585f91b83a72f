"""A judged suite's metrics declared with the engine: composites of confusion counts, findings, scores, confidence."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from metrics import Composite, Count, Mean, Metric, Rate, Sums, Total, mean_defined, population_std, ratio
from metrics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha, percent_agreement, votes
from metrics.calibration import calibration_sums, ece, equal_width_bin, expected_calibration_error, mce
from metrics.intervals import Array

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


def f1(s: Sums) -> Array:
    return 2 * s["tp"] / (2 * s["tp"] + s["fp"] + s["fn"])


def f2(s: Sums) -> Array:
    return 5 * s["tp"] / (5 * s["tp"] + s["fp"] + 4 * s["fn"])


def reasoning(s: Sums) -> Array:
    means = mean_defined(np.stack([s[name] / s[f"{name} n"] for name in SCORES], axis=-1))
    return np.where((s["found"] == 0) & (s["vulnerable"] > 0), 0.0, means)


def true_understanding(s: Sums) -> Array:
    return s["found"] / s["vulnerable"] * reasoning(s) * (1 - s["invalid"] / s["total"])


def lucky_guess_indicator(s: Sums) -> Array:
    return s["correct"] / s["n"] - s["found"] / s["vulnerable"]


def sui(s: Sums) -> Array:
    calibration = 1 - expected_calibration_error(s)
    s = {name: values.sum(axis=-1) for name, values in s.items()}
    parts = np.stack(
        [f2(s), s["found"] / s["vulnerable"], s["valid"] / s["total"], reasoning(s), calibration],
        axis=-1,
    )
    weights = np.where(np.isnan(parts), 0.0, np.array([0.25, 0.25, 0.15, 0.25, 0.10]))
    return (np.nan_to_num(parts) * weights).sum(axis=-1) / weights.sum(axis=-1)


confusion = {"tp": tp, "fp": fp, "fn": fn}
understanding = {"found": matched, "vulnerable": vulnerable, "invalid": invalid, "total": total} | {
    key: value for name in SCORES for key, value in ((name, score(name)), (f"{name} n", score(name).is_not_null()))
}
index = confusion | understanding | {"valid": pl.col("valid_findings")} | calibration_sums(confidence, correct)

ESTIMATORS = {
    **{name: Count(of) for name, of in (("tp", tp), ("tn", tn), ("fp", fp), ("fn", fn))},
    "accuracy": Rate(correct),
    "precision": Rate(tp, tp | fp),
    "recall": Rate(tp, vulnerable),
    "fpr": Rate(fp, ~vulnerable),
    "fnr": Rate(fn, vulnerable),
    "f1": Composite(f1, confusion),
    "f2": Composite(f2, confusion),
    "target_detection_rate": Rate(found, vulnerable),
    "lucky_guess_rate": Rate(pl.col("lucky_guess"), tp),
    "extra_valid_rate": Rate(pl.col("valid_findings") > found.cast(pl.Int64)),
    "target_found_count": Count(matched),
    "lucky_guess_count": Count(pl.col("lucky_guess")),
    "finding_precision": Rate(pl.col("valid_findings"), total),
    "invalid_rate": Rate(invalid, total),
    "hallucination_rate": Rate(pl.col("hallucinated_findings"), total),
    "over_flagging_score": ratio(invalid, pl.lit(True)),
    "avg_findings_per_sample": ratio(total, pl.lit(True)),
    **{name: Total(pl.col(name)) for name in ("total_findings", "valid_findings", "invalid_findings")},
    "hallucinated_findings": Total(pl.col("hallucinated_findings")),
    **{f"mean_{name}": Mean(score(name)) for name in SCORES},
    **{f"std_{name}": population_std(score(name)) for name in SCORES},
    "exact_match_rate": Rate(pl.col("type_match") == "exact", matched),
    "semantic_match_rate": Rate(pl.col("type_match").is_in(["exact", "semantic"]), matched),
    "partial_match_rate": Rate(pl.col("type_match") == "partial", matched),
    "ece": ece(confidence, correct),
    "mce": mce(confidence, correct),
    "brier_score": Mean((confidence - correct.cast(pl.Float64)) ** 2),
    "overconfidence_rate": Rate(~correct, confidence > 0.8),
    "underconfidence_rate": Rate(correct, confidence < 0.5),
    "sui": Composite(sui, index, by=equal_width_bin(confidence)),
    "true_understanding_score": Composite(true_understanding, understanding),
    "lucky_guess_indicator": Composite(
        lucky_guess_indicator, {"correct": correct, "n": pl.lit(True), "found": matched, "vulnerable": vulnerable}
    ),
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
