"""Rates of a judge whose errors a calibration knows, corrected by its sensitivity and specificity.

The rate that the judge reports is its sensitivity among the true cases, and 1 - specificity among the others (Rogan and
Gladen 1978). The interval has the uncertainty of all three, each with two unseen trials (Lang and Reiczigel 2014).
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from evalake.metrics.intervals import Z, difference


@dataclass(frozen=True, slots=True)
class Known:
    """A proportion: its value, and how many independent trials it rests on."""

    value: float
    trials: float

    @property
    def smoothed(self) -> float:
        """The proportion with one more success and one more failure."""
        return (self.value * self.trials + 1) / (self.trials + 2)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected estimate with its 95 % interval, the units behind it, and how it was corrected."""

    value: float
    se: float
    ci_low: float
    ci_high: float
    units: int
    how: str
    reliable: bool = True


def by_calibration(rate: Known, sensitivity: Known, specificity: Known, units: int) -> Corrected | None:
    """Correct a judge's rate; None where it may find no more of the true cases than of the others."""
    above_chance = sensitivity.smoothed + specificity.smoothed - 1
    spread = sqrt(sum(k.smoothed * (1 - k.smoothed) / (k.trials + 2) for k in (sensitivity, specificity)))
    if above_chance <= Z * spread:
        return None
    whole = rate.trials + Z**2
    seen = (rate.value * rate.trials + Z**2 / 2) / whole
    centre = (seen + specificity.smoothed - 1) / above_chance
    inside = min(max(centre, 0.0), 1.0)
    parts = [
        weight * known.smoothed * (1 - known.smoothed) / (known.trials + 2)
        for weight, known in ((inside, sensitivity), (1 - inside, specificity))
    ]
    variance = seen * (1 - seen) / whole + inside * parts[0] + (1 - inside) * parts[1]
    se = sqrt(variance) / above_chance
    shift = 2 * Z**2 * (parts[0] - parts[1])
    denominator = max(sensitivity.value + specificity.value - 1, 1e-9)
    value = min(max((rate.value + specificity.value - 1) / denominator, 0.0), 1.0)
    low, high = (min(max(centre + shift + sign * Z * se, 0.0), 1.0) for sign in (-1, 1))
    how = f"by a calibration: sensitivity {sensitivity.value:.2f}, specificity {specificity.value:.2f}"
    return Corrected(value, se, min(low, value), max(high, value), units, how)


def more_labels(estimate_se: float, floor_se: float, labels: int) -> int | None:
    """Compute how many more labels halve the standard error; None where the samples alone keep it larger than that.

    `floor_se` is the error that remains if people label everything.
    """
    of_labels = estimate_se**2 - floor_se**2
    left = estimate_se**2 / 4 - floor_se**2
    if of_labels <= 0 or left <= 0:
        return None
    return max(1, round(labels * (of_labels / left - 1)))


def difference_of(first: Corrected, second: Corrected) -> dict[str, float]:
    """Compute the difference of two corrected rates and its interval, as if their errors were independent (MOVER).

    What a judge, or the samples, do to both sides alike makes it too wide.
    """
    names = "value", "ci_low", "ci_high"
    a, b = ([np.asarray(getattr(each, name)) for name in names] for each in (first, second))
    low, high = difference((a[0], a[1], a[2]), (b[0], b[1], b[2]), np.zeros(()))
    values = {"value_a": first.value, "value_b": second.value, "difference": first.value - second.value}
    return values | {"ci_low": float(low), "ci_high": float(high)}


def with_corrections(row: dict[str, Any], first: Corrected | None, second: Corrected | None) -> dict[str, Any]:
    """Put the difference of two corrected rates into a compared row, and move its bounds; as it is without both."""
    if first is None or second is None or row["difference"] is None:
        return row
    known = difference_of(first, second)
    moved = known["difference"] - row["difference"]
    bounds = {name: None if row[name] is None else row[name] + moved for name in ("bound_low", "bound_high")}
    p = implied_p(known["difference"], known["ci_low"], known["ci_high"])
    return row | known | bounds | {"p": p, "units": min(first.units, second.units)}


def implied_p(value: float, low: float, high: float) -> float | None:
    """Compute the two-sided p value that the end of an interval towards 0 implies; None where it has no width."""
    reach = value - low if value > 0 else high - value
    return 2 * NormalDist().cdf(-Z * abs(value) / reach) if reach > 0 else None
