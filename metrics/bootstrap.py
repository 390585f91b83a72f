"""The bootstrap over samples, on grouped counts: what is resampled in one group, and the sums of each draw.

Resampling n rows with replacement draws how often each row occurs. Rows with equal contributions (a *cell*) are
interchangeable, so it is enough to draw how often each cell occurs: a multinomial over cells, exactly, at a cost that
does not grow with n. Counts have few cells; continuous contributions can have as many cells as rows. With more than
`MOST_CELLS` cells among more than `MOST_UNITS` rows, cells that agree in label, stratum and all conditions are merged.
The merged cells' counts are still drawn exactly; given them, what varies within a label is drawn from the normal
distribution with the covariance that resampling its rows has, which is the bootstrap's own limit for many rows (Bickel
and Freedman 1981). Drawing counts first keeps rare bins right, where a normal distribution of all sums at once would
give bins of negative size.

Rows that hang together in clusters take another way (`metrics.clusters`).

What still has more than `MOST_PARTS` parts, as by a label that differs in nearly every row, is given no interval: that
bounds the time that data can cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from metrics.intervals import Array, Integers

MOST_CELLS = 64
MOST_UNITS = 500
MOST_PARTS = 5000
ENTRIES_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Units:
    """What is resampled in one group: units (cells) and the parts that they contribute.

    count, stratum   [units]  how many rows the unit stands for, and where they may be resampled
    unit, label      [parts]  the unit a part belongs to, and the label it contributes to: ascending from 0, no gaps
    vector           [parts, sums]  contribution of one occurrence of the unit
    spread           [labels, varying, varying]  root of one row's covariance within merged cells, of the sums `varying`
    """

    count: Integers
    stratum: Integers
    unit: Integers
    label: Integers
    vector: Array
    spread: Array | None = None
    varying: tuple[int, ...] = ()

    @property
    def labels(self) -> list[slice]:
        """The parts of each label."""
        return _runs(self.label)


def actual_sums(units: Units) -> Array:
    """The sums as they are, shape [1, labels, sums]."""
    weighted = units.count[units.unit, None] * units.vector
    return np.asarray(np.add.reduceat(weighted, [part.start for part in units.labels], axis=0)[None])


def drawn_sums(units: Units, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """The sums of `draws` resamples, in blocks of shape [some, labels, sums] that bound the memory."""
    labels = units.labels
    width = max(len(units.unit), len(labels) * units.vector.shape[1], 10 * len(units.count))
    block = max(1, ENTRIES_AT_ONCE // width)
    for done in range(0, draws, block):
        times = _occurrences(units, min(block, draws - done), rng)[:, units.unit].astype(np.float64)
        sums = np.stack([times[:, part] @ units.vector[part] for part in labels], axis=1)
        if units.spread is not None:
            rows = np.stack([times[:, part].sum(axis=1) for part in labels], axis=1)
            noise = rng.standard_normal((*rows.shape, len(units.varying))) * np.sqrt(rows)[:, :, None]
            sums[:, :, units.varying] += np.einsum("dlk,lkj->dlj", noise, units.spread)
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


@dataclass(frozen=True, eq=False)
class Contributions:
    """What cells contribute: vector [cells, sums], stratum [cells], kind [cells]; see `metrics.cells.Cells`."""

    vector: Array
    stratum: Integers
    kind: Integers
    varying: tuple[int, ...]


def cells(cell: Integers, count: Integers, label: Integers, of: Contributions) -> Units:
    """Units of a group without clusters; [cells] are the cell, how many rows it has, its label from 0 without gaps."""
    if len(cell) <= MOST_CELLS or count.sum() <= MOST_UNITS or not of.varying:
        order = np.argsort(label, kind="stable")
        cell, count, label = cell[order], count[order], label[order]
        return Units(count, of.stratum[cell], np.arange(len(cell)), label, of.vector[cell])

    merged = _pair(label, of.kind[cell])
    order = np.argsort(merged.astype(np.uint16) if merged.max() < 2**16 else merged, kind="stable")
    cell, count, label, merged = cell[order], count[order], label[order], merged[order]
    starts = np.concatenate([[0], np.flatnonzero(merged[1:] != merged[:-1]) + 1])
    size = np.add.reduceat(count, starts)
    part = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cell)))
    vector = of.vector[cell[starts]]
    deviations = np.empty((len(cell), len(of.varying)))
    for i, j in enumerate(of.varying):
        values = of.vector[:, j][cell]
        vector[:, j] = np.add.reduceat(count * values, starts) / size
        deviations[:, i] = np.sqrt(count) * (values - vector[part, j])
    units = Units(size, of.stratum[cell[starts]], np.arange(len(starts)), label[starts], vector)
    spread = [_root(deviations[run].T @ deviations[run] / count[run].sum()) for run in _runs(label)]
    return replace(units, spread=np.stack(spread), varying=of.varying)


def _runs(label: Integers) -> list[slice]:
    """The entries of each label, of labels that ascend from 0 without gaps."""
    return [slice(a, b) for a, b in pairwise(np.searchsorted(label, np.arange(label[-1] + 2)).tolist())]


def _root(covariance: Array) -> Array:
    """A matrix R with R'R = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T)


def _pair(major: Integers, minor: Integers) -> Integers:
    """One number for each pair, ordered as the pairs are."""
    return np.asarray(major * (minor.max() + 1) + minor)
