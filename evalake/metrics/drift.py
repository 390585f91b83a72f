"""Drift: whether answers to the same questions moved beyond their test-retest noise, by permutation tests.

The null hypothesis is that nothing changed between two times: then the answers to one item, all asked in the same
words, are exchangeable, whichever time they were given. So the answers of each item are permuted among the two times.
Two statistics are compared with what permutation gives: the mean *distance* between an earlier and a later answer,
which sees items that move each in its own way, and the *shift* of the mean answer, which sees many items that move a
little in one way. Both tests are exact whatever the noise looks like, and however much it differs between items. The
p-value is twice the smaller of the two (Bonferroni).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import Any, TypeAlias

import numpy as np

from evalake.metrics.intervals import Array, Integers

RESAMPLES = 99_999  # drawn permutations: the smallest p-value is two in a hundred thousand
SEED = 20_260
_BATCH = 2_000  # permutations held at once

Given: TypeAlias = Mapping[str, float | str | bool | None]
"""One answer by its fields: numbers on a scale from 0 to 1, and words (None is one of them)."""

Statistic: TypeAlias = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Drift:
    """Mean distance between earlier and later answers, among the earlier ones, the mean answer's shift, the p-value."""

    distance: float
    noise: float
    shift: float
    p_value: float


def drift(earlier: Sequence[Sequence[Given]], later: Sequence[Sequence[Given]], resamples: int = RESAMPLES) -> Drift:
    """Test later answers against earlier ones: to two items or more, all with equally many later, and earlier, ones.

    The same answers give the same p-value.
    """
    answers = [[*new, *old] for new, old in zip(later, earlier, strict=True)]
    new, old = len(later[0]), len(earlier[0])
    apart, points = np.stack([distances(item) for item in answers]), _points(answers)
    from_all, all_points = apart.sum(axis=2).ravel(), points.sum(axis=(0, 1))
    items, by_row = np.arange(len(answers)), points.reshape(-1, points.shape[-1])
    first_row = items * (new + old)  # of each item: to look answers up by one index takes a third of the time

    # `places[j]` says, for each item, which of its answers stands in place j; the first `new` places are the later.
    # Both statistics look at these alone, for what the others are follows from the sums over all; a later answer's
    # distances to all are also those to the later ones, each of which is counted twice.
    def distance(*places: Integers, axis: int = -1) -> Array:
        between = [from_all.take(first_row + place) for place in places[:new]]
        within = [-2 * apart[items, a, b] for a, b in combinations(places[:new], 2)]
        return np.asarray(np.add.reduce([*between, *within]).mean(axis=axis) / (new * old))

    def shift(*places: Integers, axis: int = -1) -> Array:
        later_ones = [by_row.take(first_row + place, axis=0) for place in places[:new]]
        after = np.add.reduce([np.einsum("...ic->...c", each) for each in later_ones])
        return np.asarray(np.abs(after / new - (all_points - after) / old).sum(axis=-1) / len(items))

    among = apart[:, new:, new:].sum(axis=(1, 2)) / max(old * (old - 1), 1)
    (moved, p_moved), (shifted, p_shifted) = (_test(s, len(items), new + old, resamples) for s in (distance, shift))
    return Drift(moved, float(among.mean()), min(shifted, 1.0), min(1.0, 2 * min(p_moved, p_shifted)))


def _test(statistic: Statistic, items: int, places: int, resamples: int) -> tuple[float, float]:
    from scipy.stats import permutation_test

    test = permutation_test(
        [np.full(items, place) for place in range(places)],
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=_BATCH,
        alternative="greater",
        rng=np.random.default_rng(SEED),
    )
    return float(test.statistic), float(test.pvalue)


def distances(answers: Sequence[Given]) -> Array:
    """Compute the distance of any two answers to one item: the mean over their fields, 0 to 1."""
    return np.array([[_distance(a, b) for b in answers] for a in answers])


def _distance(a: Given, b: Given) -> float:
    return fsum(_apart(a[name], b[name]) for name in a) / max(len(a), 1)


def _apart(a: Any, b: Any) -> float:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b)
    return float(a != b)


def _points(answers: Sequence[Sequence[Given]]) -> Array:
    """Convert answers to points (items, answers, coordinates): each number is a coordinate, each word 0 or 0.5."""
    fields = list(answers[0][0])
    words = sorted({(name, str(_word(a[name]))) for item in answers for a in item for name in fields})

    def point(answer: Given) -> list[float]:
        numbers = [value if isinstance(value, float) else 0.0 for value in (answer[name] for name in fields)]
        return [*numbers, *(0.5 * (str(_word(answer[name])) == word) for name, word in words)]

    return np.array([[point(answer) for answer in item] for item in answers]) / max(len(fields), 1)


def _word(value: Any) -> Any:
    return "a number" if isinstance(value, float) else value
