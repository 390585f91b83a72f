"""Judges against people: their agreement, where they differ, and rates corrected by people's labels."""

from collections.abc import Callable
from typing import Any

import polars as pl

from metrics.agreement import cohen_kappa, gwet_ac1, percent_agreement
from metrics.compute import METRIC_ROWS, measure, metric_row
from metrics.definition import Metric
from metrics.estimators import Count
from metrics.intervals import Array
from metrics.prediction_powered import PPIEstimate, ratio

_judge, _human = pl.col("target_found"), pl.col("human_target_found")
_both = pl.col("is_vulnerable") & _judge.is_not_null() & _human.is_not_null()
_words = pl.when(_both).then(_judge), pl.when(_both).then(_human)
_weight = pl.col("human_weight").fill_null(1.0)  # a label that was picked, not drawn, counts once

METRICS: tuple[Metric, ...] = (
    Metric("judge_human_kappa", cohen_kappa(*_words, (True, False), _weight)),
    Metric("judge_human_ac1", gwet_ac1(*_words, (True, False), _weight)),
    Metric("judge_human_agreement", percent_agreement(*_words, _weight)),
    *(
        Metric(f"judge_{'found' if judge else 'missed'}_human_{'found' if human else 'missed'}", Count(both, _both))
        for judge in (True, False)
        for human in (True, False)
        for both in (((_judge == judge) & (_human == human)).fill_null(False),)
    ),
)
"""On target found: agreement beyond chance, agreement, and the four cells of the confusion matrix.

Agreement is estimated for all audits from those that were drawn; the cells count those that people answered.
"""


def judge_against_people(frame: pl.DataFrame) -> pl.DataFrame:
    """Compute `METRICS` and the corrected rates of every model and judge with labels, in the columns of `measure`."""
    labelled = frame.filter(pl.col("human_target_found").is_not_null() | pl.col("human_valid_findings").is_not_null())
    known = labelled.select("model", "judge").unique()
    if known.is_empty():
        return pl.DataFrame(schema=METRIC_ROWS)
    of_known = frame.join(known, on=["model", "judge"], how="semi", maintain_order="left")
    measured = measure(of_known, METRICS, cluster="cluster")
    rows = [
        _row(model, judge, name, estimate(rows))
        for (model, judge), rows in of_known.sort("model", "judge").group_by("model", "judge", maintain_order=True)
        for name, estimate in CORRECTED
    ]
    return pl.concat([measured.select(METRIC_ROWS.keys()), pl.DataFrame(rows, schema=METRIC_ROWS)])


def target_detection_rate(rows: pl.DataFrame) -> PPIEstimate | None:
    """Estimate the share of targets that people would say were found."""
    judged = rows.filter(pl.col("is_vulnerable"), _judge.is_not_null()).sort("sample_hash", "prompt_hash", "replicate")
    return _powered(judged, "target_found", None, "human_target_found")


def finding_precision(rows: pl.DataFrame) -> PPIEstimate | None:
    """Estimate the share of all findings that people would call valid.

    Audits without findings are left out: they add nothing to either sum, and cannot be labelled. With them among the
    samples, labels would be a sample of the others only, and the estimate too high.
    """
    judged = rows.filter(pl.col("total_findings") > 0).sort("sample_hash", "prompt_hash", "replicate")
    return _powered(judged, "valid_findings", "total_findings", "human_valid_findings")


CORRECTED: tuple[tuple[str, Callable[[pl.DataFrame], PPIEstimate | None]], ...] = (
    ("target_detection_rate_corrected", target_detection_rate),
    ("finding_precision_corrected", finding_precision),
)


def _powered(judged: pl.DataFrame, judge: str, of: str | None, human: str) -> PPIEstimate | None:
    drawn = pl.col(human).is_not_null() & pl.col("human_weight").is_not_null()  # not those that were picked
    labelled = judged.select(drawn.arg_true()).to_series()
    if judged.is_empty() or labelled.is_empty():
        return None
    chosen = judged[labelled.to_list()]
    total = judged[judge].is_not_null() if of is None else judged[of]
    return ratio(
        _array(judged[judge]),
        _array(total),
        labelled.to_numpy().astype("int64"),
        _array(chosen[human]),
        _array(chosen["human_weight"]),
    )


def _array(values: pl.Series) -> Array:
    return values.cast(pl.Float64).to_numpy()


def _row(model: Any, judge: Any, name: str, estimate: PPIEstimate | None) -> dict[str, Any]:
    labels = 0 if estimate is None else estimate.labels
    numbers = {number: getattr(estimate, number, None) for number in ("value", "se", "ci_low", "ci_high")}
    return metric_row(model, judge, name, n=labels, units=labels, **numbers)
