"""The parts that the whole simulation consists of: each is the work of one process at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

from benchmarks.coverage.conclusions import conclusions
from benchmarks.coverage.populations import COMPARED_STRUCTURES, RATES, STRUCTURES, Population, Structure
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import Cell, Compared, Conclusion, cells, compared, settled

TIMES = 400
AGAIN = 4_000
"""Samples of a cell that is simulated again because its coverage came out too low."""
CONCLUDED = 400
COMPARISONS = 60
COMPARED = (
    "rate",
    "rate of what rows count",
    "mean of scores",
    "F1",
    "balanced accuracy",
    "macro average",
    "SUI",
    "product of rates",
)
COMPARED_SIZES = (20, 50)
COMPARED_RATES = (0.02, 0.5, 0.98)
LIFTS = (0.0, 0.1)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Results of one part."""

    cells: tuple[Cell, ...] = ()
    concluded: tuple[Conclusion, ...] = ()
    compared: tuple[Compared, ...] = ()


Part = Callable[[], Simulated]


def parts() -> list[Part]:
    """List the parts of the whole, the longest ones first."""
    paired = product(COMPARED_STRUCTURES, COMPARED_SIZES, COMPARED_RATES, LIFTS)
    return [
        *(partial(_compared, *place) for place in paired),
        *(partial(_cells, *place) for place in product(STRUCTURES, RATES)),
        _concluded,
    ]


def _cells(structure: Structure, rate: float) -> Simulated:
    return Simulated(cells=tuple(settled(list(cells(TIMES, rates=(rate,), structures=(structure,))), AGAIN)))


def _concluded() -> Simulated:
    return Simulated(concluded=tuple(conclusions(CONCLUDED)))


def _compared(structure: Structure, size: int, rate: float, lift: float) -> Simulated:
    chosen = [quantity for quantity in QUANTITIES if quantity.name in COMPARED]
    return Simulated(compared=tuple(compared(chosen, Population(rate, 0.5, structure), size, COMPARISONS, lift)))
