"""The parts of the whole simulation; a process that is spawned finds them here, and not in `__main__`."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

from benchmarks.coverage.conclusions import conclusions
from benchmarks.coverage.populations import COMPARED_STRUCTURES, RATES, STRUCTURES, Population, Structure
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import Cell, Compared, Conclusion, cells, compared, settled

TIMES = 400
AGAIN = 4_000
"""Samples of a cell that is simulated again because its coverage came out too low."""
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

Simulated = Cell | Conclusion | Compared
Part = Callable[[], Iterable[Simulated]]


def parts() -> list[Part]:
    """List the parts of the whole, each the work of one process at a time, the longest ones first."""
    paired = product(COMPARED_STRUCTURES, COMPARED_SIZES, COMPARED_RATES, LIFTS)
    of_cells = [partial(_cells, *place) for place in product(STRUCTURES, RATES)]
    return [*conclusions(TIMES), *of_cells, *(partial(_compared, *place) for place in paired)]


def _cells(structure: Structure, rate: float) -> Iterable[Cell]:
    return settled(list(cells(TIMES, rates=(rate,), structures=(structure,))), AGAIN)


def _compared(structure: Structure, size: int, rate: float, lift: float) -> Iterable[Compared]:
    chosen = [quantity for quantity in QUANTITIES if quantity.name in COMPARED]
    return compared(chosen, Population(rate, 0.5, structure), size, COMPARISONS, lift)


def simulate(part: Part) -> Sequence[Simulated]:
    """Simulate a part in a process of its own."""
    return list(part())
