"""Reported models: which version of a model its provider says answered; several in one run are warned of."""

from collections.abc import Mapping

import polars as pl

from contracts.tables import CALLS, RUN_ITEMS
from storage.lake import Lake


def several_versions(lake: Lake, run_id: str, versions: Mapping[str, int | None]) -> list[str]:
    """Say of which models of a run, subjects and judges, replies came from several versions."""
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    asked = [items.select(pl.col(name).alias("prompt_hash"), "replicate") for name in ("prompt_hash", "judge_hash")]
    replies = lake.frame(CALLS).select("model", "model_reported", "prompt_hash", "replicate")
    reported = replies.drop_nulls("model_reported").join(
        pl.concat(asked).drop_nulls().unique(), on=["prompt_hash", "replicate"], how="semi"
    )
    counts = reported.group_by("model", "model_reported").len().sort("model", "model_reported").collect()
    several = counts.filter(pl.len().over("model") > 1).group_by("model", maintain_order=True)
    versions_of = {
        model: [f"{version} ({count:,} calls)" for version, count in part.select("model_reported", "len").iter_rows()]
        for (model,), part in several
    }
    return [f"{model} was answered by several versions: {', '.join(listed)}" for model, listed in versions_of.items()]
