"""The metrics of session_review, declared as data: names, formulas and slices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evalake.core.configuration import PROMPTS
from evalake.metrics.agreement import cohen_kappa, pearson
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Count, Mean, Quantile, Rate
from evalake.metrics.variance import pooled_within, population_std
from evalake.suites.session_review.prompts import criteria_hash, criteria_hash_of
from evalake.suites.session_review.replies import CATEGORIES, CATEGORY_POINTS, HIGHEST

SLICES = ("all", "alert_type", "agent", "criteria_hash")
BANDS = {"red": (0, 49), "yellow": (50, 74), "green": (75, 100)}
"""The score bands, both ends included, from bad to good."""

_score = pl.col("total_score")
_completed = pl.col("status") == "completed"
_over = _completed | (pl.col("status") == "failed")
_human = pl.when(_completed).then(pl.col("human_score"))
_human_weight = pl.col("human_weight_score")

_SESSION = ("model", "judge", "dataset", "sample_id", "sample_hash")


def _band(score: pl.Expr) -> pl.Expr:
    """Name the band that a score is in. Between two bands, where a mean may fall, it is the lower one."""
    band: pl.Expr = pl.lit(None, pl.String)
    for name, (lowest, _) in BANDS.items():
        band = pl.when(score >= lowest).then(pl.lit(name)).otherwise(band)
    return band


def in_bands(score: pl.Expr, words: Sequence[str]) -> pl.Expr:
    """Translate a score to the word for its band; null without a score."""
    return _band(score).replace_strict(list(BANDS), list(words), return_dtype=pl.String)


def _bands() -> Iterator[Metric]:
    for band, (lowest, highest) in BANDS.items():
        yield Metric(
            f"score_band_{band}_rate",
            Rate(_score.is_between(lowest, highest), _completed),
            slices=SLICES,
            description=f"Scores from {lowest} to {highest}.",
        )


def _categories() -> Iterator[Metric]:
    for category in CATEGORIES:
        about = f"Mean points for {category.replace('_', ' ')}, of 25."
        yield Metric(
            f"category_mean_{category}", Mean(pl.col(category), low=0, high=CATEGORY_POINTS), description=about
        )


METRICS: tuple[Metric, ...] = (
    Metric("score_mean", Mean(_score, low=0, high=HIGHEST), slices=SLICES, description="Mean of completed scores."),
    Metric("score_median", Quantile(_score, 0.5), slices=SLICES),
    Metric(
        "score_std",
        population_std(_score, low=0, high=HIGHEST),
        slices=SLICES,
        description="Standard deviation of completed scores (of the population, as all of evalake's).",
    ),
    Metric("score_p10", Quantile(_score, 0.1), slices=SLICES),
    Metric("score_p90", Quantile(_score, 0.9), slices=SLICES),
    *_bands(),
    Metric(
        "scoring_failure_rate",
        Rate(pl.col("status") == "failed", _over),
        slices=SLICES,
        description="Scorings that gave no score, of those that are over.",
    ),
    Metric(
        "obsolete_criteria_rate",
        Rate(pl.col("criteria_hash") != pl.lit(criteria_hash()), _completed),
        description="Scores made under criteria that are not the current ones.",
    ),
    *_categories(),
    Metric(
        "breakdown_consistent_rate",
        Rate(pl.col("breakdown_consistent"), _completed),
        description="Of the scores with a whole breakdown, those whose categories add up to the total.",
    ),
    Metric(
        "retest_std",
        pooled_within(pl.when(_completed).then(_score), (*_SESSION, "criteria_hash")),
        description="Pooled standard deviation (ddof 1) of one session's repeated scores under the same criteria; n is "
        "the sessions.",
        version=3,
    ),
    Metric(
        "judge_human_pearson",
        pearson(_score, _human, _human_weight),
        description="Correlation of the judge's scores with what people give the same sessions.",
        version=2,
    ),
    Metric(
        "judge_human_kappa_bands",
        cohen_kappa(_band(_score), _band(_human), tuple(BANDS), _human_weight),
        description="Agreement beyond chance (Cohen) on the score band, between the judge and people's mean.",
        version=2,
    ),
)

TOOL_METRICS: tuple[Metric, ...] = (
    Metric(
        "missing_tool_count",
        Count(pl.col("tool_name").is_not_null()),
        slices=("tool_name",),
        description="Sessions in which a judge missed the tool.",
    ),
)
"""The metrics of `tools_named`; one row is a session and a tool."""


def tools_named(scores: pl.LazyFrame) -> pl.LazyFrame:
    """Reduce rows of `session_scores` to one row for every session and tool that was missed in it, however often."""
    named = scores.filter(_completed).explode("missing_tools").rename({"missing_tools": "tool_name"})
    return named.filter(pl.col("tool_name").is_not_null()).unique([*_SESSION, "tool_name"], maintain_order=True)


def metrics(options: Mapping[str, Any]) -> tuple[Metric, ...]:
    """List every metric; the current criteria are those in use, and those that the configuration adds."""
    current = [criteria_hash_of(options, name) for name in ("direct", *options.get(PROMPTS, {}))]
    if current == [criteria_hash()]:
        return METRICS
    obsolete = Rate(~pl.col("criteria_hash").is_in(current), _completed)
    return tuple(replace(m, estimator=obsolete) if m.name == "obsolete_criteria_rate" else m for m in METRICS)
