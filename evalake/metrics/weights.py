"""Fit the weights of an index to a human ranking of models, and say how little a few models can tell of them.

A ranking of m models orders m(m - 1)/2 pairs, and only m - 1 are independent: for five weights that is next to
nothing, and many sets of weights order the models equally well. So the fit is not one optimum but all of them: of the
weights that agree with the most pairs, those that change least are proposed, beside the range that does as well, and
the pairs that are predicted when their model was not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evalake.core.errors import MetricError
from evalake.metrics.intervals import Array, Integers

DRAWS = 20_000
FEWEST_MODELS = 3
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
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(present)), DRAWS)
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
    if len(order) <= FEWEST_MODELS:
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
    if len(order) < FEWEST_MODELS:
        raise MetricError(f"a ranking of {len(order)} models says nothing about weights: rank at least {FEWEST_MODELS}")
    if values.shape != (len(order), len(names)):
        raise MetricError("every component needs a value, or None, for each of the ranked models")
    if not np.isfinite(order).all() or np.isinf(values).any():
        raise MetricError("a rank or a component is not a number")
    if np.isnan(values).all(axis=1).any():
        raise MetricError("a ranked model has no component at all")
    if len({*order.tolist()}) < 2:
        raise MetricError("the ranking prefers no model to another")
