"""What an estimator is: the inputs that it reads of each row, and what it makes of them in every group and draw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from types import NoneType
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from metrics.intervals import Array, Integers
from metrics.units import View


class Draw(Protocol):
    """Sums of inputs in each of many draws of units, such as exchanges of two models' answers."""

    @property
    def view(self) -> View:
        """The rows that are drawn from."""

    def sums(self, role: str) -> Array:
        """Add up an input in each draw, [draws]."""

    def apart(self, role: str, label: Integers) -> Array:
        """Add up an input in each draw for every label above 0 of the view's rows, [draws, labels]."""

    def part(self, name: str) -> "Draw":
        """Narrow the draw to the inputs of one part of a composite."""


def every_row() -> pl.Expr:
    """Return the condition that every row meets."""
    return pl.lit(True)


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric in many groups; arrays of shape [groups], NaN where there is no such number.

    Attributes:
        units: Distinct units behind `n`.
        n_eff: The effective number of independent rows.
        fewest: The units of the part that has fewest, which decides whether the whole is reliable.
        make_influence: Makes `influence`; None without uncertainty.
    """

    value: Array
    n: Array
    units: Array
    n_eff: Array
    se: Array
    ci_low: Array
    ci_high: Array
    fewest: Array
    make_influence: Callable[[], Array] | None

    @classmethod
    def bare(cls, value: Array, n: Array, units: Array) -> "Estimate":
        """Make a value without uncertainty, as of a count, which estimates nothing beyond itself."""
        unknown = np.full(len(n), np.nan)
        kept = np.where(n > 0, value, np.nan)
        return cls(kept, n, units, unknown, unknown, unknown, unknown, units, None)

    @cached_property
    def influence(self) -> Array:
        """What each unit adds to the error, [units], whose squares sum up to its variance."""
        return np.empty(0) if self.make_influence is None else self.make_influence()


class Estimator(Protocol):
    """What every estimator provides."""

    counted: ClassVar[frozenset[str]] = frozenset()
    """Inputs that must be Boolean or whole numbers."""

    @property
    def labels(self) -> frozenset[str]:
        """Inputs that tell rows apart, and are not added up."""
        return frozenset()

    def inputs(self) -> Mapping[str, pl.Expr]:
        """List what it reads of each row, by name."""

    def drawn(self, draw: Draw) -> Array:
        """Compute the quantity in each draw, [draws]; NaN where it is undefined, or no function of sums."""

    def estimate(self, view: View) -> Estimate:
        """Estimate the quantity in each group. Raises MetricError where the inputs are impossible for it."""


def estimated(estimator: Estimator, view: View) -> Estimate:
    """Estimate in each group, once for all estimators that compute the same from the same columns."""
    return view.once(identity(estimator, view), lambda: estimator.estimate(view))


def identity(estimator: Estimator, view: View) -> tuple[object, ...]:
    """Build the key of an estimate: the kind of estimator, its columns, and what else it is declared with."""
    declared = [getattr(estimator, each.name) for each in fields(estimator)] if is_dataclass(estimator) else [estimator]
    plain = (float, int, str, NoneType)
    others = (each if isinstance(each, plain) else id(each) for each in declared if not isinstance(each, pl.Expr))
    return type(estimator), view.read(), *others
