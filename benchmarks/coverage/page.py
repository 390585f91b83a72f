"""The table of coverage in the docs: a row for each kind of interval and structure, a column for each size."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.coverage.populations import SIZES
from benchmarks.coverage.simulation import LEAST, MOST, Cell

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WIDE, SHORT = "wide", "short"
Tested = tuple[str, str, int, float, float]
"""A test: what it is of, the structure, the samples, the share of false positives, the coverage of the interval."""


def write(cells: Sequence[Cell], tests: Iterable[Tested], times: int, path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text("\n".join([_HEAD.format(times=times), *_rows(cells), _TESTS, *_tested(tests), ""]))


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


def _tested(tests: Iterable[Tested]) -> Iterable[str]:
    for name, structure, size, significant, held in tests:
        yield f"| {name} | {structure} | {size} | {significant:.1%} | {held:.1%} |"


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

_TESTS = """
## Tests of equal models

Two models that share eight of ten samples' answers, and differ by chance on the others: how often p is below 5 %, and
how often the paired interval holds 0, over all rates.

| of | rows | n | called different | interval holds 0 |
|---|---|---|---|---|"""
