"""Coverage: simulates every kind of interval and the tests of equal models, and writes the table into the docs."""

from collections.abc import Iterator
from itertools import product
from statistics import mean

from benchmarks.coverage.page import Tested, write
from benchmarks.coverage.populations import RATES, STRUCTURES, Population
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, Cell, cells, compared
from benchmarks.measure import Measure, report, say

TIMES = 500
COMPARISONS = 60
TESTED = ("rate", "mean of scores", "balanced accuracy")
TESTED_SIZE = 50


def main() -> None:
    """Measure, and write the page."""
    simulated: list[Cell] = []
    for structure in STRUCTURES:
        simulated += cells(TIMES, structures=(structure,))
        say(f"{structure.name}: {len(simulated):,} cells so far")
    tests = list(_tests())
    write(simulated, tests, TIMES)
    kept = mean(cell.coverage >= LEAST for cell in simulated)
    worst = min(simulated, key=lambda cell: cell.coverage)
    behind = f"worst: {worst.name}, {worst.population.structure.name}, {worst.population.rate:g}, n {worst.size}"
    false = max(significant for *_, significant, _ in tests)
    report(
        [
            Measure("cells that 95 % intervals cover to 93 %", kept, 0.9, True, "", f"{len(simulated):,} cells"),
            Measure("lowest coverage of a cell", worst.coverage, 0.5, True, "", behind),
            Measure("equal models called different", false, 0.06, False, "", f"highest of {len(tests)} tests"),
        ]
    )


def _tests() -> Iterator[Tested]:
    chosen = [quantity for quantity in QUANTITIES if quantity.name in TESTED]
    for quantity, structure in product(chosen, STRUCTURES):
        of_rates = [compared(quantity, Population(rate, 0.5, structure), TESTED_SIZE, COMPARISONS) for rate in RATES]
        significant, held = (mean(each) for each in zip(*of_rates, strict=True))
        yield quantity.name, structure.name, TESTED_SIZE, significant, held
        say(f"{quantity.name}, {structure.name}: {significant:.1%} called different")


if __name__ == "__main__":
    main()
