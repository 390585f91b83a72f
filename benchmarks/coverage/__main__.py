"""Coverage: simulates every kind of interval, test and decision, and writes the tables into the docs."""

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from statistics import mean

from benchmarks.coverage.page import write
from benchmarks.coverage.parts import parts, simulate
from benchmarks.coverage.simulation import LEAST, MARKED, Cell, Compared, Conclusion
from benchmarks.measure import Measure, report, say


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
