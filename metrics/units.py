"""What the bootstrap over clusters resamples: units of clusters, dealt once a slice, and how often each is drawn.

A unit is a cluster; where a group has more than `MOST_UNITS`, they are first dealt at random into that many blocks,
which keeps the variance in expectation (the random-groups method, Wolter 2007) and bounds the cost of drawing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrics.intervals import Array, Integers

MOST_UNITS = 500
DRAWS_KEPT = 4

Generator = Callable[..., np.random.Generator]
"""A generator of random numbers for all that is named to it."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of every group of a slice, in order of group, then stratum.

    of_row   [rows]        the unit of each row; rows in no group have units behind all others
    stratum  [units]       where a unit may be resampled
    starts   [groups + 1]  the first unit of each group, and where the last group's end
    """

    of_row: Integers
    stratum: Integers
    starts: Integers

    @classmethod
    def deal(cls, group: Integers, groups: int, cluster: Integers, stratum: Integers, random: Generator) -> "Units":
        """From each row's group (`groups`: in none), cluster and stratum; `random` of a group's number deals it out."""
        clusters, strata = int(cluster.max()) + 1, int(stratum.max()) + 1
        of_row, pairs = numbered(group * clusters + cluster, (groups + 1) * clusters)
        group_of_pair = pairs // clusters
        starts = np.searchsorted(group_of_pair, np.arange(groups + 2))
        place = np.arange(len(pairs)) - starts[group_of_pair]
        for each in np.flatnonzero(np.diff(starts[:-1]) > MOST_UNITS).tolist():
            own = slice(*starts[each : each + 2].tolist())
            place[own] = random(each).permutation(own.stop - own.start)
        block = (place % MOST_UNITS)[of_row]
        unit, keys = numbered((group * strata + stratum) * MOST_UNITS + block, (groups + 1) * strata * MOST_UNITS)
        ends = np.arange(groups + 1) * strata * MOST_UNITS
        return cls(unit, keys // MOST_UNITS % strata, np.searchsorted(keys, ends))

    def of_group(self, group: int) -> slice:
        """The units of a group."""
        return slice(*self.starts[group : group + 2].tolist())


def numbered(keys: Integers, below: int) -> tuple[Integers, Integers]:
    """Each key's number among the distinct keys, ascending from 0, and the distinct keys; all are 0 to `below`."""
    if below > max(8 * len(keys), 1_000_000):
        distinct, number = np.unique(keys, return_inverse=True)
        return number, distinct
    occurs = np.zeros(below, dtype=np.bool_)
    occurs[keys] = True
    return (np.cumsum(occurs) - 1)[keys], np.flatnonzero(occurs)


class Draws:
    """How often each of some units occurs in each draw; the same for as many units, whatever they are of."""

    def __init__(self, draws: int, random: Generator) -> None:
        self.draws = draws
        self._random = random
        self._kept: dict[tuple[int, ...], Array] = {}

    def of(self, stratum: Integers) -> Array:
        """[draws, units]: within each stratum as many as it has, with replacement. `stratum` [units] ascends."""
        sizes = tuple(np.unique(stratum, return_counts=True)[1].tolist())
        kept = self._kept.get(sizes)
        if kept is None:
            random = self._random(*sizes)
            kept = np.concatenate([_occurrences(self.draws, size, random) for size in sizes], axis=1)
            if len(self._kept) >= DRAWS_KEPT:
                self._kept.clear()
            self._kept[sizes] = kept
        return kept


def _occurrences(draws: int, units: int, random: np.random.Generator) -> Array:
    drawn = random.integers(0, units, (draws, units)) + units * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * units).reshape(draws, units).astype(np.float64)
