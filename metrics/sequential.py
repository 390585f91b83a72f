"""Intervals that one may look at after every round of samples, and stop when they settle what was asked.

A 95 % interval errs in 5 % of samples when it is looked at once. Who looks after every round and stops as soon as he
likes what he sees errs far more often. The wider interval here holds at all looks together: the boundary of an
asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory
and asymptotic confidence sequences"), by which any of our intervals is widened about its value.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

ERROR = 0.05
"""How often the truth is outside at any look, at most, about."""

FEWEST_UNITS = 20
"""Below so many units nothing is settled: the boundary is asymptotic."""


@dataclass(frozen=True, slots=True)
class Anytime:
    """The widening of an interval that is looked at repeatedly.

    Attributes:
        most_units: How many units there will be at most; the widening is least at a quarter of them, where sampling
            that stops early usually stops.
    """

    most_units: int

    def factor(self, units: int) -> float:
        """Compute how many times wider the interval is, at so many units, than that of a single look."""
        spread = -2 * math.log(ERROR)
        scale = (spread + math.log(spread + 1)) / max(self.most_units / 4, FEWEST_UNITS) * units
        boundary = math.sqrt(2 * (scale + 1) / scale * math.log(math.sqrt(scale + 1) / ERROR))
        return boundary / NormalDist().inv_cdf(1 - ERROR / 2)

    def widened(
        self, value: float, low: float | None, high: float | None, units: int
    ) -> tuple[float | None, float | None]:
        """Widen the interval of a value; none where there was none, or where there are too few units for one."""
        if low is None or high is None or units < FEWEST_UNITS:
            return None, None
        factor = self.factor(units)
        return value - factor * (value - low), value + factor * (high - value)
