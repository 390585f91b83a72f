"""Drawing: which results are worth people's time, by a sample of known chances, and what each drawn one stands for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from core.errors import UsageError
from core.hashing import content_hash


def draw(units: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """About `size` units, each with its `inclusion_probability`, which is in proportion to its weight, up to 1.

    A systematic sample in random order (Madow 1949): it has exactly these probabilities, by which estimates from the
    labels are freed from the preference for informative units. The same seed draws the same, under the same `draw`.
    """
    if size < 1:
        raise UsageError(f"a sample of {size} results cannot be drawn: ask for 1 or more")
    if units.is_empty():
        return units.with_columns(inclusion_probability=pl.lit(None, pl.Float64), draw=pl.lit(None, pl.String))
    chance = inclusion(units["weight"].to_numpy(), size)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    ticks = np.arange(rng.random(), ends[-1], 1.0)
    chosen = np.unique(order[np.minimum(np.searchsorted(ends, ticks, side="right"), len(order) - 1)])
    drawn = units.with_columns(inclusion_probability=pl.Series(chance))[chosen]
    return drawn.with_columns(draw=pl.lit(content_hash(drawn.rows())))


def inclusion(weight: np.ndarray[Any, np.dtype[np.float64]], size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities in proportion to the weights, none above 1, that sum to `size` (to all, where there are fewer)."""
    if size >= len(weight):
        return np.ones(len(weight))
    chance = np.zeros(len(weight))
    certain = np.zeros(len(weight), dtype=bool)
    while True:
        rest = size - certain.sum()
        chance = np.where(certain, 1.0, rest * weight / weight[~certain].sum())
        over = (chance > 1) & ~certain
        if not over.any():
            return np.minimum(chance, 1.0)
        certain |= over


def represented(labels: pl.LazyFrame, unit: Sequence[str]) -> pl.LazyFrame:
    """How much each labelled unit stands for, as `human_weight`, from all draws together.

    A draw is made among what nobody has labelled before. With what was labelled by then, each one for itself, it
    estimates the whole (Des Raj 1956): one over its chance is what a unit stands for in its own draw, and 1 in each
    later one. The draws count by their sizes. What was picked, or labelled by chance 1, stands for itself.

    Args:
        labels: Rows of `human_labels` about the units of one run.
        unit: The columns that identify what was drawn.
    """
    first = labels.sort("labelled_at", "label_id").unique(unit, keep="first", maintain_order=True)
    first = first.select(*unit, "inclusion_probability", "labelled_at", pl.col("draw").fill_null(""))
    drawn = first.filter(pl.col("inclusion_probability").is_not_null())
    draws = drawn.group_by("draw").agg(size=pl.len(), begun=pl.col("labelled_at").min()).sort("begun", "draw")
    share = pl.col("size") / pl.col("size").sum()
    later = (1 - share.cum_sum()).clip(lower_bound=0.0)
    known = first.join(draws.select("draw", share=share, later=later), on="draw", how="left", maintain_order="left")
    weight = pl.col("share") / pl.col("inclusion_probability") + pl.col("later")
    return known.select(
        *unit, human_weight=pl.when(pl.col("inclusion_probability").is_null()).then(1.0).otherwise(weight)
    )
