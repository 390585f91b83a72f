"""Populations whose true values are known, and many samples of each, one beside the other in one frame."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

SIZES = (20, 50, 200)
RATES = (0.02, 0.1, 0.5, 0.9, 0.98)
SHARES = (0.5, 0.1)
"""Shares of vulnerable samples: balanced, and 1:9."""
LABELS = 5
WORTHS = (0.5, 1.0, 2.0, 3.0)
CONFIDENCES = (0.55, 0.7, 0.8, 0.9, 0.95, 1.0)
COUNTED = 5
"""The mean of counts at a rate of 1."""
HEAVY = 2.0
"""The deviation of the logarithm of amounts of which few make most of the sum."""
LEVELS = 4
"""Scores are 0, 1/4, … 1."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Structure:
    """How rows depend on each other.

    Attributes:
        together: Samples of one cluster.
        repeats: How often each sample is asked.
        alike: The correlation of what is random within a cluster, and within a sample's repeats.
        opposed: The share of clusters in which the second sample is answered right where the first is not, and only
            there, as by a model that says the same of a contract and its patched twin.
        sizes: How many samples the clusters have, in turns; `together` without sizes.
    """

    name: str
    together: int = 1
    repeats: int = 1
    alike: float = 0.0
    opposed: float = 0.0
    sizes: tuple[int, ...] = ()

    @property
    def mean_size(self) -> int:
        """How many samples a cluster has on average."""
        return sum(self.sizes) // len(self.sizes) if self.sizes else self.together

    def sizes_of(self, units: int) -> NDArray[np.int64]:
        """Compute how many samples each cluster has."""
        return np.resize(self.sizes or self.together, units)


STRUCTURES = (
    Structure("single"),
    Structure("pairs", together=2, alike=0.5),
    Structure("clusters of 5", together=5, alike=0.3),
    Structure("5 repeats", repeats=5, alike=0.8),
    Structure("unequal clusters", alike=0.3, sizes=(1, 1, 4, 14)),
)
GEOMETRIC = (1, 1, 1, 2, 2, 3, 4, 6, 8, 12)
"""Samples of unequal clusters: 40 of these tell as much as 23 equal ones."""


def unequal(units: int, alike: float, *, heavy: bool) -> Structure:
    """Declare few clusters of unequal size; if `heavy`, one has a third of all samples."""
    what = "one with a third of all" if heavy else "unequal"
    sizes = (units - 1, *(2,) * (units - 1)) if heavy else tuple(np.resize(GEOMETRIC, units).tolist())
    return Structure(f"{units} clusters, {what}, icc {alike:g}", alike=alike, sizes=sizes)


COMPARED_STRUCTURES = (*STRUCTURES[:4], Structure("opposed twins", together=2, opposed=0.85))


@dataclass(frozen=True, slots=True)
class Population:
    """What samples are drawn from: a rate of right answers, a share of vulnerable samples, and a structure of rows."""

    rate: float
    share: float
    structure: Structure

    def draw(self, size: int, times: int, seed: int) -> pl.DataFrame:
        """Draw `times` samples of `size`, each under a model of its own, with the columns that the quantities read."""
        place = [int(self.rate * 100), int(self.share * 10), *map(ord, self.structure.name)]
        rng = np.random.default_rng([seed, size, *place])
        repeats = self.structure.repeats
        sizes = self.structure.sizes_of(size // self.structure.mean_size)
        units, of_row = len(sizes), np.repeat(np.arange(len(sizes)), sizes * repeats)
        shape = (times, len(of_row))
        chance = self._chances(rng, (times, units))[:, of_row]
        within = np.sqrt(self.structure.alike)

        def shared() -> Floats:
            """Draw standard normal values, one for each unit."""
            return rng.standard_normal((times, units))[:, of_row]

        def normal() -> Floats:
            """Draw standard normal values with the structure's correlation within units."""
            own = rng.standard_normal(shape)
            return np.asarray(within * shared() + np.sqrt(1 - within**2) * own)

        positives = max(1, round(size * self.share))
        number = np.broadcast_to(np.arange(len(of_row)) // repeats, shape)
        positive = (number * positives) % size < positives
        right = rng.random(shape) < chance
        if self.structure.opposed:
            opposed = rng.random((times, units)) < self.structure.opposed
            right[:, 1::2] = np.where(opposed, ~right[:, ::2], right[:, 1::2])
        confidence = rng.choice(CONFIDENCES, shape)
        agree = rng.random((*shape, 2)) < 0.8
        first = rng.standard_normal(shape) * np.sqrt(1 - within**2) + within * shared()
        findings = rng.poisson(2.0, shape)
        columns = {
            "model": np.broadcast_to(np.arange(times)[:, None], shape),
            "cluster": of_row + units * np.arange(times)[:, None],
            "sample": number + len(of_row) * np.arange(times)[:, None],
            "positive": positive,
            "right": right,
            "label": np.broadcast_to(number % LABELS, shape),
            "worth": np.array(WORTHS)[number % len(WORTHS)],
            "score": rng.binomial(LEVELS, chance) / LEVELS,
            "confidence": confidence,
            "honest": rng.random(shape) < confidence,
            "count": rng.poisson(COUNTED * chance, shape),
            "amount": np.exp(normal()),
            "heavy": np.exp(HEAVY * normal()),
            "normal": normal(),
            "second": np.where(agree[..., 0], right, rng.random(shape) < self.rate),
            "third": np.where(agree[..., 1], right, rng.random(shape) < self.rate),
            "x": first,
            "y": self.rate * first + np.sqrt(1 - self.rate**2) * normal(),
            "findings": findings,
            "valid": rng.binomial(findings, chance),
        }
        frame = pl.DataFrame({name: np.ascontiguousarray(values).ravel() for name, values in columns.items()})
        return frame.with_columns(judge=pl.lit(None, pl.String))

    def _chances(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Draw each unit's chance of a right answer: beta distributed around the rate, correlated as declared."""
        if self.structure.alike == 0:
            return np.full(shape, self.rate)
        weight = 1 / self.structure.alike - 1
        return rng.beta(self.rate * weight, (1 - self.rate) * weight, shape)
