"""What a transformation of a contract costs a model: pairs of a base and what was made of it, by model and judge.

A base is the sample without a transformation. Where a run lacks it, its least changed variant stands in.
"""

from collections.abc import Iterator

import polars as pl

from evalake.metrics.compute import METRIC_ROWS, Metric, measure
from evalake.metrics.estimators import Mean, Rate
from evalake.suites.solidity_audit.truth import KNOWLEDGE

BASES = ("original", "minimal_sanitized", "sanitized", "no_comments")
"""What can stand for a base, the least changed first."""
DISGUISES = "chameleon|shapeshifter|renamed"
"""Transformations that hide where a contract is from, and leave what it does."""
PAIR = ("model", "judge", "prompt_type", "replicate", "base")
_COMPARED = ("target_found", "detection_correct", "said_vulnerable", "is_vulnerable")
_SLICES = ("all", "transformation")

_same_truth = pl.col("is_vulnerable") == pl.col("is_vulnerable base")
_fixed = pl.col("is_vulnerable base") & ~pl.col("is_vulnerable")
_told = pl.col("said_vulnerable").is_not_null() & pl.col("said_vulnerable base").is_not_null()
_disguised = pl.col("transformation").str.contains(DISGUISES)


def _lost(name: str, where: pl.Expr) -> Mean:
    before, after = (pl.col(column).cast(pl.Float64) for column in (f"{name} base", name))
    return Mean(pl.when(where).then(before - after), low=-1, high=1)


METRICS = (
    Metric("robustness_drop_target_detection_rate", _lost("target_found", _same_truth), slices=_SLICES),
    Metric("robustness_drop_accuracy", _lost("detection_correct", pl.lit(True)), slices=_SLICES),
    Metric(
        "consistency_rate",
        Rate(pl.col("said_vulnerable") == pl.col("said_vulnerable base"), _same_truth & _told),
        slices=_SLICES,
    ),
    Metric(
        "fix_recognised_rate",
        Rate(~pl.col("said_vulnerable"), _fixed & pl.col("said_vulnerable base") & _told),
        slices=_SLICES,
    ),
    Metric("memorisation_gap", _lost("target_found", _same_truth & _disguised), slices=("all", "contaminated")),
)
"""Base minus variant, the same verdict on both, fixes that are noticed, and targets lost by a disguise alone."""


def robustness(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure `METRICS` over pairs of base and variant, a base being one unit; no rows without a pair."""
    paired = pairs(frame)
    if paired.is_empty():
        return pl.DataFrame(schema=METRIC_ROWS)
    return measure(paired, METRICS, cluster="cluster").select(METRIC_ROWS.keys())


def pairs(frame: pl.DataFrame) -> pl.DataFrame:
    """Join each variant's answer with the one about its base, and with whether the model knew the base."""
    probes = frame.filter(pl.col("prompt_type") == KNOWLEDGE)
    audits = frame.filter(pl.col("prompt_type") != KNOWLEDGE, pl.col("base").is_not_null()).with_columns(
        rank=pl.col("transformation")
        .fill_null(BASES[0])
        .replace_strict({name: rank for rank, name in enumerate(BASES)}, default=None, return_dtype=pl.Int64)
    )
    bases = audits.drop_nulls("rank").sort("rank", "sample_hash").unique(PAIR, keep="first", maintain_order=True)
    compared = bases.select(
        *PAIR, pl.col("rank").alias("rank base"), *(pl.col(c).alias(f"{c} base") for c in _COMPARED)
    )
    joined = audits.join(compared, on=PAIR, nulls_equal=True, maintain_order="left")
    known = probes.group_by("model", "base").agg(knew=pl.col("contaminated").any(ignore_nulls=False))
    changed = joined.filter(pl.col("rank").is_null() | (pl.col("rank") != pl.col("rank base")))
    with_probe = changed.join(known, on=("model", "base"), how="left", maintain_order="left")
    word = pl.when("knew").then(pl.lit("known")).when(~pl.col("knew")).then(pl.lit("not known"))
    return with_probe.with_columns(contaminated=word)


def base_warnings(frame: pl.DataFrame) -> Iterator[str]:
    """Say which variant stands in for bases that the run lacks."""
    audits = frame.filter(pl.col("transformation").is_not_null(), pl.col("prompt_type") != KNOWLEDGE)
    by_base = audits.group_by("base").agg(pl.col("transformation").unique())
    stand_in = dict.fromkeys(BASES[1:], 0)
    for made in by_base["transformation"].to_list():
        first = next((name for name in BASES if name in made), None)
        if first in stand_in and len(made) > 1:
            stand_in[first] += 1
    for name, count in stand_in.items():
        if count:
            yield f"robustness: {count} bases have no original in this run, and are compared with {name}"
