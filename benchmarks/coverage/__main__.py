"""Coverage: simulates every kind of interval, test and decision, and writes the tables into the docs."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from multiprocessing import get_context
from statistics import mean

from benchmarks.coverage.conclusions import conclusions
from benchmarks.coverage.page import write
from benchmarks.coverage.populations import COMPARED_STRUCTURES, RATES, STRUCTURES, Population, Structure
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, MARKED, Cell, Compared, Conclusion, cells, compared, settled
from benchmarks.measure import Measure, report, say

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


def main() -> None:
    """Simulate all parts, write the page, and report the measures."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        under_way = [processes.submit(simulate, part) for part in parts()]
        for number, _ in enumerate(as_completed(under_way), start=1):
            say(f"{number} of {len(under_way)} parts are simulated")
    done = [each for part in under_way for each in part.result()]
    simulated = [each for each in done if isinstance(each, Cell)]
    concluded = [each for each in done if isinstance(each, Conclusion)]
    comparisons = [each for each in done if isinstance(each, Compared)]
    write(simulated, concluded, comparisons)
    kept = mean(cell.coverage >= LEAST for cell in simulated)
    unmarked = [cell for cell in simulated if cell.marked < MARKED]
    worst = min(unmarked, key=lambda cell: cell.coverage)
    behind = f"worst: {worst.name}, {worst.population.structure.name}, {worst.population.rate:g}, n {worst.size}"
    equal = [each.significant for each in comparisons if not each.lift]
    concluding = mean(each.kept for each in concluded)
    paired = mean(each.coverage >= LEAST for each in comparisons)
    report(
        [
            Measure("cells that 95 % intervals cover to 93 %", kept, 0.9, True, "", f"{len(simulated):,} cells"),
            Measure("lowest coverage of a cell that is not marked", worst.coverage, 0.92, True, "", behind),
            Measure("equal models called different", mean(equal), 0.05, False, "", f"mean of {len(equal)} cells"),
            Measure("conclusions within reach", concluding, 0.95, True, "", f"{len(concluded)} simulations"),
            Measure("cells that paired intervals cover to 93 %", paired, 0.9, True, "", f"{len(comparisons):,} cells"),
        ]
    )


if __name__ == "__main__":
    main()
