"""Drift: whether answers to the same questions moved beyond their test-retest noise, by permutation tests.

The null hypothesis is that nothing changed between two times: then the answers to one item, all asked in the same
words, are exchangeable, whichever time they were given. So the answers of each item are permuted among the two times.
Each field of an answer is tested by two statistics: the mean *distance* between an earlier and a later answer, which
sees items that move each in its own way, and the *shift* of the mean answer, which sees many items that move a little
in one way. Each is divided by its own spread under permutation, and the largest decides (max-T, Westfall and Young
1993): noise of one field hides no change of another. The test is exact for any noise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb
from typing import Any, TypeAlias

import numpy as np

from evalake.metrics.intervals import Array

RESAMPLES = 99_999  # drawn permutations: the smallest p-value is two in a hundred thousand
SEED = 20_260
_BATCH = 2_000  # permutations held at once
TIE = 1e-9  # statistics, and values of a series, closer than this are equal but for rounding

Given: TypeAlias = Mapping[str, float | str | bool | None]
"""One answer by its fields: numbers on a scale from 0 to 1, and words (None is one of them)."""


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
    new, old, items = len(later[0]), len(earlier[0]), len(answers)
    fields = list(answers[0][0])
    apart = np.stack([_apart_by_field(item, fields) for item in answers])
    points = [_points(answers, name) / max(len(fields), 1) for name in fields]

    def statistics(is_later: Array) -> Array:
        """Compute distance and shift of each field, [draws, 2 fields], from which answers are the later, [draws, …]."""
        distance = np.zeros((len(is_later), len(fields)))
        for item in range(items):
            own = is_later[:, item]
            to_each = (own @ apart[item].reshape(new + old, -1)).reshape(len(own), new + old, -1)
            distance += np.einsum("bnf,bn->bf", to_each, 1 - own)
        flat = is_later.reshape(len(is_later), -1)
        shifts = []
        for of_field in points:
            after = flat @ of_field.reshape(items * (new + old), -1)
            means = after / new - (of_field.sum(axis=(0, 1)) - after) / old
            shifts.append(np.abs(means).sum(axis=-1) / items)
        return np.column_stack([distance / (items * new * old), *shifts])

    observed = np.zeros((1, items, new + old))
    observed[:, :, :new] = 1.0
    seen = statistics(observed)
    drawn = np.concatenate([seen, *map(statistics, _permuted(items, new, new + old, resamples))])
    spread = drawn.std(axis=0)
    largest = np.where(spread > TIE, (drawn - drawn.mean(axis=0)) / np.where(spread > TIE, spread, 1.0), -np.inf)
    largest = largest.max(axis=1, initial=-np.inf)
    # The one observed counts once: all orders have it, and to random ones it is added.
    counted = largest[1:] if comb(new + old, new) ** items <= resamples else largest
    p_value = float(np.mean(counted >= largest[0] - TIE)) if np.isfinite(largest[0]) else 1.0
    among = apart.mean(axis=-1)[:, new:, new:].sum(axis=(1, 2)) / max(old * (old - 1), 1)
    distance, shift = seen[0, : len(fields)].mean(), seen[0, len(fields) :].sum()
    return Drift(float(distance), float(among.mean()), min(float(shift), 1.0), p_value)


def _permuted(items: int, new: int, places: int, resamples: int) -> Iterator[Array]:
    """Yield which answers of each item are the later, [draws, items, places]: in all orders, or in random ones."""
    if comb(places, new) ** items <= resamples:
        chosen = [[float(place in each) for place in range(places)] for each in combinations(range(places), new)]
        orders = product(chosen, repeat=items)
        while batch := list(islice(orders, _BATCH)):
            yield np.array(batch)
        return
    random = np.random.default_rng(SEED)
    for first in range(0, resamples, _BATCH):
        order = random.random((min(_BATCH, resamples - first), items, places)).argsort(axis=-1)
        yield (order < new).astype(np.float64)


def distances(answers: Sequence[Given]) -> Array:
    """Compute the distance of any two answers to one item: the mean over their fields, 0 to 1."""
    fields = list(answers[0])
    return _apart_by_field(answers, fields).mean(axis=-1) if fields else np.zeros((len(answers), len(answers)))


def _apart_by_field(answers: Sequence[Given], fields: Sequence[str]) -> Array:
    """Compute the distances of any two answers in each field, [answers, answers, fields]."""
    return np.array([[[_apart(a[name], b[name]) for name in fields] for b in answers] for a in answers])


def _apart(a: Any, b: Any) -> float:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b)
    return float(a != b)


def _points(answers: Sequence[Sequence[Given]], name: str) -> Array:
    """Convert a field of answers to points (items, answers, coordinates): each number is one, each word 0 or 0.5."""
    words = sorted({str(_word(a[name])) for item in answers for a in item})

    def point(value: Any) -> list[float]:
        return [value if isinstance(value, float) else 0.0, *(0.5 * (str(_word(value)) == word) for word in words)]

    return np.array([[point(a[name]) for a in item] for item in answers])


def _word(value: Any) -> Any:
    return "a number" if isinstance(value, float) else value


# Trends: whether a series of values, night after night, left where it began.


BEGINNING = 10
"""Values that say where a series begins; later ones are held against their mean."""

ALLOWANCE, LARGEST_STEP = 0.75, 3.0
"""Standard deviations that a value may lie off for nothing, and those that one value counts at most."""

THRESHOLD = 13.0
"""Simulated: of unchanged series of 365 values at most 5 % pass it, rare flips and heavy tails included."""

FALSE_ALARMS_A_YEAR = 0.05


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a series was found to have left its beginning, and since where it lies apart, as numbers of its values."""

    found: int
    since: int
    upwards: bool


def moved(values: Sequence[float], unknown: Sequence[float] = ()) -> Moved | None:
    """Watch a series by a two-sided cumulative sum (Page 1954); None where it stays where it began.

    `unknown` says how far each value may lie from the one that nothing missing would give; it counts from there.

    A value counts by its distance from the mean of the first ten, in standard deviations of the noise from each value
    to the next so far, which neither a step nor a slow change inflates much. Noise must not depend on earlier noise.
    """
    series = np.asarray(values, np.float64)
    if len(series) <= BEGINNING:
        return None
    centre = series[:BEGINNING].mean()
    noise = np.sqrt(np.cumsum(np.diff(series) ** 2) / 2 / np.arange(1, len(series)))
    may_move = np.asarray(unknown or np.zeros(len(series)), np.float64)
    sums, since = {1: 0.0, -1: 0.0}, {1: BEGINNING, -1: BEGINNING}
    for place in range(BEGINNING, len(series)):
        apart = series[place] - centre
        rounding = TIE * max(1.0, abs(centre))
        off = np.sign(apart) * max(0.0, abs(apart) - may_move[place] - rounding)
        step = 0.0 if off == 0 else LARGEST_STEP if noise[place - 1] == 0 else abs(off) / noise[place - 1]
        for side in sums:
            if sums[side] == 0:
                since[side] = place
            sums[side] = max(0.0, sums[side] + side * float(np.sign(off)) * min(step, LARGEST_STEP) - ALLOWANCE)
            if sums[side] > THRESHOLD:
                return Moved(place, since[side], side == 1)
    return None
