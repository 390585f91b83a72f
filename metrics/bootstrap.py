"""The bootstrap over samples, on grouped counts: what is resampled in one group, and the sums of each draw.

Resampling n rows with replacement draws how often each row occurs. Rows with equal contributions (a *cell*) are
interchangeable, so it is enough to draw how often each cell occurs: a multinomial over cells, exactly, at a cost that
does not grow with n. Counts have few cells. Continuous contributions can have as many cells as rows; above `MOST_CELLS`
cells, those that agree in their label, stratum and all conditions are merged, the merged cell's count is still drawn
exactly, and given the count its sums are drawn from the normal distribution with the very mean and covariance that
resampling its rows has: the bootstrap's own limit for many rows (Bickel and Freedman 1981). Drawing counts first keeps
rare bins right, where a normal distribution of all sums at once would give bins negative sizes.

Clusters are resampled whole. Above `MOST_CELLS` clusters they are first dealt at random into that many blocks, which
keeps the variance in expectation (the random-groups method, Wolter 2007).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metrics.intervals import Array, Integers

MOST_CELLS = 256
ENTRIES_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Units:
    """What is resampled in one group: units (cells or clusters) and the parts that they contribute.

    count, stratum   [units]  how many rows or clusters the unit stands for, and where they may be resampled
    unit, label      [parts]  the unit a part belongs to, and the label it contributes to: ascending from 0, no gaps
    vector           [parts, sums]  contribution of one occurrence of the unit
    spread           [parts, varying, varying]  root of the covariance within a merged cell, of the sums `varying`
    """

    count: Integers
    stratum: Integers
    unit: Integers
    label: Integers
    vector: Array
    spread: Array | None = None
    varying: tuple[int, ...] = ()

    @property
    def label_slices(self) -> list[slice]:
        starts = np.searchsorted(self.label, np.arange(self.label[-1] + 2))
        return [slice(a, b) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]


def actual_sums(units: Units) -> Array:
    """The sums as they are, shape [1, labels, sums]."""
    weighted = units.count[units.unit, None] * units.vector
    starts = [part.start for part in units.label_slices]
    return np.asarray(np.add.reduceat(weighted, starts, axis=0)[None])


def drawn_sums(units: Units, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """The sums of `draws` resamples, in blocks of shape [some, labels, sums] that bound the memory."""
    labels = int(units.label[-1]) + 1
    width = max(len(units.unit) * (1 + len(units.varying)), labels * units.vector.shape[1], 10 * len(units.count))
    block = max(1, ENTRIES_AT_ONCE // width)
    for done in range(0, draws, block):
        times = _occurrences(units, min(block, draws - done), rng)[:, units.unit].astype(np.float64)
        sums = np.stack([times[:, part] @ units.vector[part] for part in units.label_slices], axis=1)
        if units.spread is not None:
            noise = rng.standard_normal((*times.shape, len(units.varying))) * np.sqrt(times)[:, :, None]
            for i, part in enumerate(units.label_slices):
                sums[:, i, units.varying] += np.einsum("dpk,pkj->dj", noise[:, part], units.spread[part], optimize=True)
        yield sums


def _occurrences(units: Units, draws: int, rng: np.random.Generator) -> Integers:
    """How often each unit occurs in each draw, [draws, units]: multinomial within each stratum."""
    times = np.zeros((draws, len(units.count)), dtype=np.int64)
    for stratum in np.unique(units.stratum):
        members = np.flatnonzero(units.stratum == stratum)
        count, n = units.count[members], int(units.count[members].sum())
        if n > 10 * len(members):
            times[:, members] = rng.multinomial(n, count / n, size=draws)
        else:  # the same distribution: with few rows to a cell it is faster to draw the rows
            cell = np.repeat(np.arange(len(members)), count)[rng.integers(0, n, (draws, n))]
            flat = (cell + len(members) * np.arange(draws)[:, None]).ravel()
            times[:, members] = np.bincount(flat, minlength=draws * len(members)).reshape(draws, -1)
    return times


def cells(
    count: Integers, stratum: Integers, label: Integers, kind: Integers, vector: Array, varying: tuple[int, ...]
) -> Units:
    """Units of a group without clusters, all [cells]; cells of equal `kind` differ in the sums `varying` only."""
    order = np.argsort(label, kind="stable")
    count, stratum, label, kind, vector = count[order], stratum[order], label[order], kind[order], vector[order]
    if len(count) <= MOST_CELLS or not varying:
        return Units(count, stratum, np.arange(len(count)), label, vector)
    merged = np.unique(_pair(label, kind), return_inverse=True)[1]
    order = np.argsort(merged, kind="stable")
    count, stratum, label, vector = count[order], stratum[order], label[order], vector[order]
    starts = np.flatnonzero(np.diff(merged[order], prepend=-1))
    size = np.add.reduceat(count, starts)
    mean = np.add.reduceat(count[:, None] * vector, starts, axis=0) / size[:, None]
    spread = np.zeros((len(starts), len(varying), len(varying)))
    for i, (a, b) in enumerate(zip(starts.tolist(), [*starts[1:].tolist(), len(count)], strict=True)):
        if b - a > 1:
            deviation = vector[a:b, varying] - mean[i, varying]
            spread[i] = (count[a:b, None] * deviation).T @ deviation / size[i]
    values, vectors = np.linalg.eigh(spread)
    root = np.sqrt(np.clip(values, 0.0, None))[:, :, None] * np.swapaxes(vectors, 1, 2)
    return Units(size, stratum[starts], np.arange(len(starts)), label[starts], mean, root, varying)


def clusters(
    cluster: Integers, count: Integers, stratum: Integers, label: Integers, vector: Array, rng: np.random.Generator
) -> Units:
    """Units of a group with clusters: each row of the arguments says that `cluster` holds `count` rows of one cell."""
    names, cluster = np.unique(cluster, return_inverse=True)
    if len(names) > MOST_CELLS:
        cluster = rng.permutation(len(names))[cluster] % MOST_CELLS
    _, first, unit = np.unique(_pair(stratum, cluster), return_index=True, return_inverse=True)
    _, start, part = np.unique(_pair(label, unit), return_index=True, return_inverse=True)
    total = np.zeros((len(start), vector.shape[1]))
    np.add.at(total, part, count[:, None] * vector)
    return Units(np.ones(len(first), dtype=np.int64), stratum[first], unit[start], label[start], total)


def _pair(major: Integers, minor: Integers) -> Integers:
    """One number for each pair, ordered as the pairs are."""
    return np.asarray(major * (minor.max() + 1) + minor)
