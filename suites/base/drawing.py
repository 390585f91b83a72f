"""Drawing: a sample of results to be labelled, with known probabilities, and how many results each one stands for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from core.errors import UsageError
from core.hashing import content_hash


def draw(units: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """Draw about `size` units, each with its `inclusion_probability`, which is in proportion to its weight, up to 1.

    A systematic sample in random order (Madow 1949): it has exactly these probabilities. Weighting by them removes the
    preference for informative units from estimates. The same seed draws the same units, under the same `draw`.
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
    """Compute probabilities proportional to the weights, none above 1, with the sum `size` (all 1 for fewer units)."""
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
    """Compute how many units each labelled one stands for, as `human_weight`, from all draws together.

    A draw is made among the units that nobody has labelled before. With the units labelled by then, which count 1 each,
    it estimates the whole (Des Raj 1956): a unit counts one over its probability in its own draw, and 1 in each later
    one. The draws are weighted by their sizes. A unit that was picked, or labelled by chance 1, counts 1.

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
