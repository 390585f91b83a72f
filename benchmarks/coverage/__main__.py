"""Coverage: simulates every kind of interval and the tests of equal models, and writes the table into the docs."""

from collections.abc import Iterator
from itertools import product
from statistics import mean

from benchmarks.coverage.page import write
from benchmarks.coverage.populations import COMPARED_STRUCTURES, STRUCTURES, Population
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, Cell, Compared, cells, compared
from benchmarks.measure import Measure, report, say

TIMES = 500
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


def main() -> None:
    """Measure, and write the page."""
    simulated: list[Cell] = []
    for structure in STRUCTURES:
        simulated += cells(TIMES, structures=(structure,))
        say(f"{structure.name}: {len(simulated):,} cells so far")
    comparisons = list(_comparisons())
    write(simulated, comparisons, TIMES, COMPARISONS)
    kept = mean(cell.coverage >= LEAST for cell in simulated)
    worst = min(simulated, key=lambda cell: cell.coverage)
    behind = f"worst: {worst.name}, {worst.population.structure.name}, {worst.population.rate:g}, n {worst.size}"
    equal = [each.significant for each in comparisons if not each.lift]
    paired = mean(each.coverage >= LEAST for each in comparisons)
    report(
        [
            Measure("cells that 95 % intervals cover to 93 %", kept, 0.9, True, "", f"{len(simulated):,} cells"),
            Measure("lowest coverage of a cell", worst.coverage, 0.5, True, "", behind),
            Measure("equal models called different", mean(equal), 0.05, False, "", f"mean of {len(equal)} cells"),
            Measure("cells that paired intervals cover to 93 %", paired, 0.9, True, "", f"{len(comparisons):,} cells"),
        ]
    )


def _comparisons() -> Iterator[Compared]:
    chosen = [quantity for quantity in QUANTITIES if quantity.name in COMPARED]
    for structure in COMPARED_STRUCTURES:
        for rate, lift, size in product(COMPARED_RATES, LIFTS, COMPARED_SIZES):
            yield from compared(chosen, Population(rate, 0.5, structure), size, COMPARISONS, lift)
        say(f"comparisons of {structure.name}")


if __name__ == "__main__":
    main()
