"""Items and small parts: which items discriminate the wrong way, and rates of small slices drawn towards the others.

An item is good at telling models apart if those that are right on it are right on the rest, too: its item-rest
correlation. Where that is below 0, the label is more often wrong than the models. Both are extras beside the metrics.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from evalake.metrics.intervals import Array, Z

FEWEST_MODELS = 8
"""The fewest models for a statement about single items."""

FEWEST_PARTS = 5
"""The fewest parts of a slice for an estimate of their variance."""

ITEM_REST = {
    "sample_hash": pl.String(),
    "models": pl.Int64(),
    "right": pl.Float64(),
    **dict.fromkeys(("correlation", "ci_low", "ci_high"), pl.Float64()),
}


def item_rest(answers: pl.DataFrame) -> pl.DataFrame:
    """Correlate each item with the rest of the items, over models that answered it, the most opposed first.

    Args:
        answers: model, sample_hash, and whether the answer is `correct`; repeats and judges are averaged.

    Returns:
        The columns `ITEM_REST`, with Fisher's interval; no row for items of fewer than eight models, or on which, or on
        the rest, all models are alike.
    """
    known = (
        answers.drop_nulls("correct").group_by("model", "sample_hash").agg(pl.col("correct").cast(pl.Float64).mean())
    )
    if known.is_empty() or known["model"].n_unique() < FEWEST_MODELS:
        return pl.DataFrame(schema=ITEM_REST)
    table = known.sort("model").pivot(on="model", index="sample_hash", values="correct").sort("sample_hash")
    share = table.drop("sample_hash").to_numpy()
    seen = ~np.isnan(share)
    counts = seen.sum(axis=1)
    total, items = np.nansum(share, axis=0), seen.sum(axis=0)
    with np.errstate(all="ignore"):
        rest = np.where(seen, (total - share) / (items - 1), np.nan)
        correlation = _pearson(share, rest)
        reach = Z / np.sqrt(counts - 3)
        low, high = np.tanh(np.arctanh(correlation) - reach), np.tanh(np.arctanh(correlation) + reach)
        right = np.nanmean(np.where(seen, share, np.nan), axis=1)
    columns = table["sample_hash"], counts, right, correlation, low, high
    rows = pl.DataFrame(dict(zip(ITEM_REST, columns, strict=True)), schema=ITEM_REST)
    defined = rows.filter(pl.col("models") >= FEWEST_MODELS, pl.col("correlation").is_not_nan())
    return defined.sort("correlation", "sample_hash")


def _pearson(x: Array, y: Array) -> Array:
    """Correlate row by row what is known of both; NaN where either does not vary."""
    a, b = (each - np.nanmean(each, axis=1, keepdims=True) for each in (x, y))
    spread = np.sqrt(np.nansum(a**2, axis=1) * np.nansum(b**2, axis=1))
    return np.where(spread > 1e-12, np.clip(np.nansum(a * b, axis=1) / spread, -0.999999, 0.999999), np.nan)


# Small slices, drawn towards the mean of all parts as far as parts vary: a beta-binomial model, in full.


MEANS = (np.arange(60) + 0.5) / 60
CONCENTRATIONS = 1 / ((np.arange(60) + 0.5) / 60) - 1
"""Of the beta distribution that parts' rates come from: each mean, and each correlation within parts, is as likely."""

DRAWS, SEED = 4_000, 20_240_603
"""From the posterior of each part, whose quantiles are the interval."""


def shrunk(rates: Sequence[float], trials: Sequence[float]) -> tuple[Array, Array, Array] | None:
    """Estimate the rates of a slice's parts by a beta-binomial model: (value, low, high), 95 % of each posterior.

    Args:
        rates: Of each part.
        trials: How many independent trials each rests on (`n_eff`).

    Returns:
        None with fewer than five parts, which do not tell how parts vary.
    """
    from scipy.special import betaln, logsumexp

    if len(rates) < FEWEST_PARTS:
        return None
    n = np.asarray(trials, np.float64)
    k = np.asarray(rates, np.float64) * n
    mean, strength = (each.ravel() for each in np.meshgrid(MEANS, CONCENTRATIONS))
    a, b = mean * strength, (1 - mean) * strength
    after = a[:, None] + k, b[:, None] + n - k
    likelihood = (betaln(*after) - betaln(a, b)[:, None]).sum(axis=1)
    weight = np.exp(likelihood - logsumexp(likelihood))
    random = np.random.default_rng(SEED)
    drawn = random.choice(len(weight), DRAWS, p=weight / weight.sum())
    value = weight @ (after[0] / (after[0] + after[1])) / weight.sum()
    low, high = np.quantile(random.beta(after[0][drawn], after[1][drawn]), (0.025, 0.975), axis=0)
    return value, np.minimum(low, value), np.maximum(high, value)


def with_shrunk(values: pl.DataFrame, proportions: Sequence[str]) -> pl.DataFrame:
    """Add `shrunk`, `shrunk_low` and `shrunk_high` to metric rows: model-based rates of parts of slices, else null.

    `proportions` are the metrics that are proportions of rows.
    """
    names = "shrunk", "shrunk_low", "shrunk_high"
    ours = values.with_row_index("place").filter(
        pl.col("slice") != "all", pl.col("metric").is_in(list(proportions)), pl.col("value").is_not_null()
    )
    found = []
    for _, part in ours.drop_nulls("n_eff").group_by("model", "judge", "metric", "slice", maintain_order=True):
        estimated = shrunk(part["value"].to_list(), part["n_eff"].to_list())
        if estimated is not None:
            found.append(pl.DataFrame({"place": part["place"], **dict(zip(names, estimated, strict=True))}))
    schema = pl.Schema({"place": pl.UInt32(), **dict.fromkeys(names, pl.Float64())})
    known = pl.concat([pl.DataFrame(schema=schema), *(each.cast(schema) for each in found)])
    return values.with_row_index("place").join(known, on="place", how="left", maintain_order="left").drop("place")
