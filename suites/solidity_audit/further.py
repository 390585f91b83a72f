"""Metrics across rows: agreement of judges, replicates and people, and how firm the ranking by SUI is."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import polars as pl

from metrics.agreement import cohen_kappa, fleiss_kappa, icc_2_1, krippendorff_alpha, pearson, percent_agreement, votes
from metrics.compute import RELIABLE_FROM, measure
from metrics.definition import Metric
from metrics.estimators import Rate
from suites.solidity_audit.against_people import COLUMNS, judge_against_people
from suites.solidity_audit.metrics import SCORES, sui
from suites.solidity_audit.options import calibration_unstated, sui_weight_sets
from suites.solidity_audit.panel import PREFIX, panel_name

ANSWERS = (True, False)
AUDIT = ("sample_hash", "prompt_type", "replicate", "cluster")


def further_metrics(frame: pl.DataFrame, options: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """All of them, in the columns of `metrics.compute.measure`."""
    return pl.concat(
        [
            judge_agreement(frame, seed),
            replicate_agreement(frame, seed),
            rank_stability(frame, options, seed),
            judge_against_people(frame, seed),
        ]
    )


def judge_agreement(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Agreement of each panel's judges: of all on target found and scores, and of each pair (slice `judge_pair`)."""
    parts = []
    panels = frame.filter(pl.col("judge").str.starts_with(PREFIX)).select("model", "judge").unique().sort("model")
    for model, panel in panels.iter_rows():
        rows = frame.filter(pl.col("model") == model, ~pl.col("judge").str.starts_with(PREFIX))
        judges = sorted(rows["judge"].unique())
        if panel_name(judges) != panel:
            continue  # a panel of judges that this run does not have
        found = {judge: pl.col(f"target_found {judge}") for judge in judges}
        wide = _wide(rows, "judge", judges, ("target_found", *SCORES))
        metrics = {("all", "", m.name): m for m in _of_all(list(found.values()), judges)}
        for a, b in combinations(judges, 2):
            metrics |= {("judge_pair", f"{a}~{b}", m.name): m for m in _of_pair(a, b, found)}
        parts.append(_measured(wide, metrics, seed).with_columns(pl.lit(panel).alias("judge")))
    return _stacked(parts)


def replicate_agreement(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Test-retest agreement of each judge on target found, for each pair of replicates (slice `replicate_pair`)."""
    parts = []
    for (_, judge), rows in frame.sort("model", "judge").group_by("model", "judge", maintain_order=True):
        replicates = sorted(rows["replicate"].unique())
        if len(replicates) < 2:
            continue
        wide = _wide(rows, "replicate", replicates, ("target_found",))
        metrics: dict[tuple[str, str, str], Metric] = {}
        for a, b in combinations(replicates, 2):
            first, second = pl.col(f"target_found {a}"), pl.col(f"target_found {b}")
            for name, estimator in _nominal(first, second):
                metrics["replicate_pair", f"{a}~{b}", name] = Metric(f"{name} {a}~{b}", estimator)
        parts.append(_measured(wide, metrics, seed).with_columns(pl.lit(judge, pl.String).alias("judge")))
    return _stacked(parts)


def rank_stability(frame: pl.DataFrame, options: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """The lowest rank correlation of the models' SUI between any two weight sets: one number a judge, n its models."""
    from scipy.stats import spearmanr

    sets = sui_weight_sets(options)
    unstated = calibration_unstated(options)
    declared = [Metric(name, sui(weights, unstated)) for name, weights in sets.items()]
    values = measure(frame, declared, seed=seed, cluster="cluster", draws=2).drop_nulls("value")
    rows = []
    for (judge,), of_judge in values.group_by("judge", maintain_order=True):
        wide = of_judge.pivot("metric", index="model", values="value").drop_nulls().sort("model")
        models = wide.height
        ranks = {name: wide[name].round(12).rank().to_list() for name in sets if name in wide.columns}
        varied = models > 1 and len(ranks) == len(sets) and all(len({*ranked}) > 1 for ranked in ranks.values())
        lowest = min(float(spearmanr(a, b)[0]) for a, b in combinations(ranks.values(), 2)) if varied else None
        for model in wide["model"]:
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            row |= {"model": model, "judge": judge, "slice": "all", "slice_value": "", "metric": "sui_rank_stability"}
            rows.append(row | {"value": lowest, "n": models, "reliable": models >= RELIABLE_FROM})
    return pl.DataFrame(rows, schema=dict(COLUMNS))


def _of_all(found: Sequence[pl.Expr], judges: Sequence[str]) -> list[Metric]:
    counts = votes(found, ANSWERS)
    unanimous = pl.any_horizontal(*[count == len(judges) for count in counts])
    scores = {score: [pl.col(f"{score} {judge}") for judge in judges] for score in SCORES}
    return [
        Metric("fleiss_kappa", fleiss_kappa(counts, len(judges))),
        Metric("krippendorff_alpha", krippendorff_alpha(counts)),
        Metric("unanimous_rate", Rate(unanimous, _all_answered(found))),
        *(Metric(f"icc_2_1_{score}", icc_2_1(given)) for score, given in scores.items()),
    ]


def _of_pair(a: str, b: str, found: Mapping[str, pl.Expr]) -> list[Metric]:
    """Of two judges, on the samples that every judge of the panel answered."""
    answered = _all_answered(list(found.values()))
    first, second = (pl.when(answered).then(found[judge]) for judge in (a, b))
    given = {score: (pl.col(f"{score} {a}"), pl.col(f"{score} {b}")) for score in SCORES}
    declared = [
        *_nominal(first, second),
        *((f"icc_2_1_{score}", icc_2_1(pair)) for score, pair in given.items()),
        *((f"pearson_{score}", pearson(*pair)) for score, pair in given.items()),
    ]
    return [Metric(f"{name} {a}~{b}", estimator) for name, estimator in declared]


def _nominal(first: pl.Expr, second: pl.Expr) -> list[tuple[str, Any]]:
    return [
        ("cohen_kappa", cohen_kappa(first, second, ANSWERS)),
        ("percent_agreement", percent_agreement(first, second)),
    ]


def _all_answered(found: Sequence[pl.Expr]) -> pl.Expr:
    return pl.all_horizontal(*[answer.is_not_null() for answer in found])


def _wide(rows: pl.DataFrame, by: str, values: Sequence[Any], columns: Sequence[str]) -> pl.DataFrame:
    """One row an audit, with a column `COLUMN VALUE` for each of the values of `by`; null where there is no answer."""
    index = [name for name in AUDIT if name != by]
    told = [
        pl.col(column).filter(pl.col(by) == value).first().alias(f"{column} {value}")
        for column in columns
        for value in values
    ]
    return rows.group_by("model", *index, maintain_order=True).agg(*told)


def _measured(wide: pl.DataFrame, metrics: Mapping[tuple[str, str, str], Metric], seed: int) -> pl.DataFrame:
    """The metrics of one model, each renamed to its slice, slice value and name."""
    measured = measure(wide, list(metrics.values()), seed=seed, groups=("model",), cluster="cluster")
    keys = pl.DataFrame(
        [
            {"metric": metric.name, "slice": name, "slice_value": value, "metric name": metric.name.split(" ")[0]}
            for (name, value, _), metric in metrics.items()
        ]
    )
    named = measured.drop("slice", "slice_value").join(keys, on="metric", maintain_order="left")
    return named.drop("metric").rename({"metric name": "metric"})


def _stacked(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=dict(COLUMNS)), *(part.select(COLUMNS.keys()) for part in parts)])
