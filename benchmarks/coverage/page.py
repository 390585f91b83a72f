"""The table of coverage in the docs: a row for each kind of interval and structure, a column for each size."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean

from benchmarks.coverage.populations import SIZES
from benchmarks.coverage.simulation import LEAST, MOST, Cell, Compared

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WIDE, SHORT = "wide", "short"


def write(cells: Sequence[Cell], compared: Sequence[Compared], times: int, each: int, path: Path = PAGE) -> None:
    """Write the page: `times` samples of each population, `each` comparisons."""
    head, comparisons = _HEAD.format(times=times), _COMPARISONS.format(each=each)
    path.write_text("\n".join([head, *_rows(cells), comparisons, *_compared(compared), ""]))


def mark(coverages: Iterable[float], error: float = 0.0) -> str:
    """Say whether intervals are too short in some cell, by more than chance, or wide in some."""
    known = list(coverages)
    if any(each < LEAST - error for each in known):
        return SHORT
    return WIDE if any(each > MOST + error for each in known) else ""


def _rows(cells: Sequence[Cell]) -> Iterable[str]:
    named = sorted(cells, key=lambda cell: (_order(cells, cell.name), _order_of_structure(cells, cell)))
    for (name, structure), group in groupby(named, key=lambda cell: (cell.name, cell.population.structure.name)):
        of = list(group)
        columns = [_range([cell.coverage for cell in of if cell.size == size]) for size in SIZES]
        lowest = min(of, key=lambda cell: cell.coverage)
        where = (
            f"{lowest.coverage:.1%} at {lowest.population.rate:g}, n {lowest.size}" if lowest.coverage < LEAST else ""
        )
        yield f"| {name} | {structure} | {' | '.join(columns)} | {mark(cell.coverage for cell in of)} | {where} |"


def _compared(comparisons: Sequence[Compared]) -> Iterable[str]:
    def kind(each: Compared) -> tuple[str, str, int]:
        return each.name, each.population.structure.name, each.size

    for name, structure, size in dict.fromkeys(sorted(map(kind, comparisons), key=lambda key: key[0])):
        of = [each for each in comparisons if kind(each) == (name, structure, size)]
        false = mean(each.significant for each in of if not each.lift)
        coverages = [each.coverage for each in of]
        lowest = min(of, key=lambda each: each.coverage)
        where = f" at {lowest.population.rate:g}" if lowest.coverage < LEAST else ""
        held = f"{_range(coverages)}{where} | {mean(coverages):.1%}"
        yield f"| {name} | {structure} | {size} | {false:.1%} | {held} | {mean(each.width for each in of):.3f} |"


def _range(coverages: Sequence[float]) -> str:
    return f"{min(coverages):.1%} – {max(coverages):.1%}" if coverages else "–"


def _order(cells: Sequence[Cell], name: str) -> int:
    return next(place for place, cell in enumerate(cells) if cell.name == name)


def _order_of_structure(cells: Sequence[Cell], of: Cell) -> int:
    return next(place for place, cell in enumerate(cells) if cell.population.structure == of.population.structure)


_HEAD = """# Coverage: how often an interval holds the true value

Written by `python -m benchmarks coverage`: {times:,} samples of every size from each of 40 populations, with rates of
.02, .1, .5, .9 and .98, vulnerable samples balanced and 1:9 where that matters; rows each for itself, in pairs (half of
the variance between them), in clusters of five (three tenths), and samples asked five times (eight tenths). n is
samples: 20 samples in clusters of five are four units. A row's cells are the lowest and the highest coverage over all
rates and shares.

95 % are promised, 93 to 98 % the reach. **wide** marks rows that are above it somewhere: few units, or few of either
answer, where only a wide interval holds what it promises. **short** marks rows that are below it somewhere, with the
worst cell. A proportion has jumps: no interval of 50 rows at a rate of .02 covers between 92.2 % (Wilson's, which is
what `rate` promises to be) and 98.2 %. With {times:,} samples the standard error of a cell is about one point, so that
the lowest of many is below 93 % by chance, too; means of counts near 0 that hang together are not.
Cells in which fewer than 1 in 20 samples has an interval are left out.

| interval | rows | n = 20 | n = 50 | n = 200 | | worst, where short |
|---|---|---|---|---|---|---|"""

_COMPARISONS = """
## Paired differences

Two models that share eight of ten clusters' answers, and differ by chance on the others: equal ones, and such that the
first has another tenth of its answers right; {each} comparisons of each, at rates of .02, .5 and .98. **Called
different**: how often equal models have a p below 5 %. **Holds**: how often the interval holds the true difference,
lowest and highest of the six cells, and on average; the standard error of a cell is nearly three points, so that the
lowest is below 93 % by chance, too. Intervals agree with p, which errs in far less than 5 % where few rows differ: so
they are wide there. In opposed twins a second sample is answered right where the first is not, in 85 of 100 pairs.

Before, with MOVER's interval everywhere, interval and p contradicted each other in 1,715 of these 28,800 comparisons,
now in none. Intervals held in 99.9 %, now in 99.7 %; at n = 50 their mean width was .250 for single rows and .302 for
opposed twins, now .200 and .219.

| of | rows | n | called different | holds | on average | mean width |
|---|---|---|---|---|---|---|"""
