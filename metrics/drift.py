"""Drift: whether answers to the same questions moved beyond their test-retest noise, by a permutation test.

The null hypothesis is that nothing changed between two times: then the answers to one item, all asked in the same
words, are exchangeable, whichever time they were given. So the answers of each item are permuted among the two times,
and what is compared is the mean distance between an earlier and a later answer. The test is exact whatever the noise
looks like, and however much it differs between items; a shift of any item counts, whichever direction it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

RESAMPLES = 99_999  # drawn permutations; the smallest p that they can give is one in a hundred thousand
SEED = 20_260
_BATCH = 2_000  # permutations held at once

Given = Mapping[str, float | str | bool | None]
"""One answer by its fields: numbers on a scale from 0 to 1, and words (None is one of them)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Mean distance between earlier and later answers, among the earlier ones, and the test's p-value."""

    distance: float
    noise: float
    p_value: float


def drift(earlier: Sequence[Sequence[Given]], later: Sequence[Sequence[Given]], resamples: int = RESAMPLES) -> Drift:
    """Test answers against earlier ones, item by item: two items or more, each with as many of either as all others.

    The same answers give the same p-value.
    """
    from scipy.stats import permutation_test

    apart = np.stack([distances([*new, *old]) for new, old in zip(later, earlier, strict=True)])
    new, old = len(later[0]), len(earlier[0])
    items = np.arange(len(apart))

    def between(*places: npt.NDArray[np.int64], axis: int = -1) -> npt.NDArray[np.float64]:
        """`places[j]` says, for each item, which of its answers stands in place j; the first `new` are the later."""
        total = sum(apart[items, a, b] for a in places[:new] for b in places[new:])
        return np.asarray(np.asarray(total).mean(axis=axis) / (new * old), dtype=np.float64)

    found = permutation_test(
        [np.full(len(apart), place) for place in range(new + old)],
        between,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=_BATCH,
        alternative="greater",
        rng=np.random.default_rng(SEED),
    )
    among = apart[:, new:, new:].sum(axis=(1, 2)) / max(old * (old - 1), 1)
    return Drift(float(found.statistic), float(among.mean()), float(found.pvalue))


def distances(answers: Sequence[Given]) -> npt.NDArray[np.float64]:
    """How far any two answers to one item are apart: the mean over their fields, 0 to 1."""
    return np.array([[_distance(a, b) for b in answers] for a in answers])


def _distance(a: Given, b: Given) -> float:
    return fsum(_apart(a[name], b[name]) for name in a) / max(len(a), 1)


def _apart(a: Any, b: Any) -> float:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b)
    return float(a != b)
