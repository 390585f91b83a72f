"""Extras beside the metrics: items that discriminate the wrong way, rates of small parts, weights of an index.

An item is good at telling models apart if those that are right on it are right on the rest, too: its item-rest
correlation. Where that is below 0, the label is more often wrong than the models. Rates of small parts of a slice are
drawn towards the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from evalake.core.errors import MetricError
from evalake.metrics.intervals import Array, Integers, Z

FEWEST_MODELS = 8
"""Below so many models nothing is said of single items."""

FEWEST_PARTS = 5
"""Below so many parts of a slice nothing is known of how parts vary."""

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


# Weights of an index, fitted to a human ranking of models, and how little a few models can tell of them.
#
# A ranking of m models orders m(m - 1)/2 pairs, and only m - 1 are independent: for five weights that is next to
# nothing, and many sets of weights order the models equally well. So the fit is not one optimum but all of them: of the
# weights that agree with the most pairs, those that change least are proposed, beside the range that does as well, and
# the pairs that are predicted when their model was not seen.


SETS_DRAWN = 20_000
FEWEST_RANKED = 3
WELL_SUPPORTED = 10  # independent comparisons for each free weight


@dataclass(frozen=True, slots=True)
class Fit:
    """The proposed weights, how well they agree with people, and how much that is worth."""

    weights: Mapping[str, float]
    lowest: Mapping[str, float]  # of the weights that agree equally well
    highest: Mapping[str, float]
    pairs: int  # of models that people put in an order
    agreeing: int  # ordered alike by the index with the proposed weights
    agreeing_before: int  # with the present weights
    predicted: float | None  # share of pairs ordered alike when fitted without one of the two; None with three models
    spearman: float | None  # rank correlation of index and people; None where the index does not vary
    support: str  # in words: how little data this is


def fit_weights(
    components: Mapping[str, Sequence[float | None]], ranks: Sequence[float], present: Mapping[str, float], seed: int
) -> Fit:
    """Fit weights to people's ranks.

    components  by name, each model's value, 0 to 1, higher is better; None where undefined, which leaves its index
    ranks       people's rank of each model, 1 the best; equal ranks are no preference
    present     the weights now in use, by name

    Raises MetricError for fewer than three models, no preference at all, or values that do not fit together.
    """
    names = list(components)
    values = np.array([[np.nan if v is None else v for v in components[name]] for name in names], np.float64).T
    order = np.asarray(ranks, np.float64)
    _require_fit(values, order, names, present)
    candidates = _candidates(np.array([present[name] for name in names]), seed)
    scores = _index(values, candidates)
    agreement = _agreement(scores, order, range(len(order)))
    best = _best(agreement, candidates)
    equal = candidates[agreement == agreement.max()]
    pairs = sum(order[a] != order[b] for a, b in combinations(range(len(order)), 2))
    return Fit(
        weights=_named(names, candidates[best]),
        lowest=_named(names, equal.min(axis=0)),
        highest=_named(names, equal.max(axis=0)),
        pairs=int(pairs),
        agreeing=int(agreement[best]),
        agreeing_before=int(agreement[0]),
        predicted=_predicted(scores, order, candidates),
        spearman=_spearman(scores[:, best], order),
        support=_support(len(order), len(names), len(equal) / len(candidates)),
    )


def _candidates(present: Array, seed: int) -> Array:
    """Draw sets of weights [sets, weights], each of sum 1: the present ones first, then many drawn uniformly."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(present)), SETS_DRAWN)
    return np.vstack([present / present.sum(), np.full((1, len(present)), 1 / len(present)), drawn])


def _index(values: Array, weights: Array) -> Array:
    """Compute each model's index under each set [models, sets]; undefined values leave it, as in the index itself."""
    defined = ~np.isnan(values)
    return np.asarray((np.where(defined, values, 0.0) @ weights.T) / (defined @ weights.T))


def _agreement(scores: Array, order: Array, models: Sequence[int] | range) -> Integers:
    """Count how many of people's preferences among `models` each set of weights shares."""
    shared = np.zeros(scores.shape[1], dtype=np.int64)
    for a, b in combinations(models, 2):
        if order[a] != order[b]:
            better, worse = (a, b) if order[a] < order[b] else (b, a)
            shared += scores[better] > scores[worse] + 1e-12
    return shared


def _best(agreement: Integers, candidates: Array) -> int:
    """Find, of the sets that agree most, the one that changes the present weights least."""
    change = np.abs(candidates - candidates[0]).sum(axis=1)
    return int(np.lexsort((change, -agreement))[0])


def _predicted(scores: Array, order: Array, candidates: Array) -> float | None:
    if len(order) <= FEWEST_RANKED:
        return None
    right = asked = 0
    for left_out in range(len(order)):
        others = [model for model in range(len(order)) if model != left_out]
        chosen = scores[:, _best(_agreement(scores, order, others), candidates)]
        for other in others:
            if order[other] != order[left_out]:
                asked += 1
                right += (chosen[left_out] - chosen[other]) * (order[other] - order[left_out]) > 0
    return right / asked if asked else None


def _spearman(index: Array, order: Array) -> float | None:
    from scipy.stats import spearmanr

    if len({*np.round(index, 12).tolist()}) < 2:
        return None
    return float(spearmanr(np.round(index, 12), -order)[0])


def _support(models: int, weights: int, equal: float) -> str:
    needed = WELL_SUPPORTED * (weights - 1) + 1
    reason = f"{models} models give {models - 1} independent comparisons for {weights - 1} free weights"
    if models >= needed:
        return f"{reason}; {equal:.0%} of all weights agree equally well"
    return f"{reason}, and {equal:.0%} of all weights agree equally well: far too little, rank {needed} models or more"


def _named(names: Sequence[str], values: Array) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


def _require_fit(values: Array, order: Array, names: Sequence[str], present: Mapping[str, float]) -> None:
    if set(names) != set(present):
        raise MetricError(f"weights are wanted for {', '.join(names)}, but the present ones are for other components")
    if len(order) < FEWEST_RANKED:
        raise MetricError(f"a ranking of {len(order)} models says nothing about weights: rank at least {FEWEST_RANKED}")
    if values.shape != (len(order), len(names)):
        raise MetricError("every component needs a value, or None, for each of the ranked models")
    if not np.isfinite(order).all() or np.isinf(values).any():
        raise MetricError("a rank or a component is not a number")
    if np.isnan(values).all(axis=1).any():
        raise MetricError("a ranked model has no component at all")
    if len({*order.tolist()}) < 2:
        raise MetricError("the ranking prefers no model to another")
