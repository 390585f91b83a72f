"""The table of coverage in the docs: a row for each kind of interval and structure, a column for each size."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean

from benchmarks.coverage.conclusions import Conclusion
from benchmarks.coverage.populations import SIZES
from benchmarks.coverage.simulation import LEAST, MOST, Cell, Compared

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WIDE, SHORT = "wide", "short"


def write(
    cells: Sequence[Cell], concluded: Sequence[Conclusion], compared: Sequence[Compared], path: Path = PAGE
) -> None:
    """Write the page: coverage of every interval, errors of conclusions, and paired differences."""
    head = _HEAD.format(least=min(cell.times for cell in cells), most=max(cell.times for cell in cells))
    comparisons = _COMPARISONS.format(each=compared[0].times)
    parts = [head, *_rows(cells), _CONCLUSIONS, *_concluded(concluded), comparisons, *_compared(compared), ""]
    path.write_text("\n".join(parts))


def mark(coverages: Iterable[float]) -> str:
    """Say whether intervals are too short in some cell, or wide in some."""
    known = list(coverages)
    if any(each < LEAST for each in known):
        return SHORT
    return WIDE if any(each > MOST for each in known) else ""


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


def _concluded(concluded: Sequence[Conclusion]) -> Iterable[str]:
    for each in sorted(concluded, key=lambda each: each.name):
        reach = f"at most {each.most:.0%}" if each.most < 1 else f"at least {each.least:.0%}"
        missed = "" if each.kept else "missed"
        yield f"| {each.name} | {each.where} | {each.times:,} | {reach} | {each.share:.1%} | {missed} |"


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

Written by `python -m benchmarks coverage`: {least:,} samples of every size from each of 40 populations, with rates of
.02, .1, .5, .9 and .98, vulnerable samples balanced and 1:9 where that matters; rows each for itself, in pairs (half of
the variance between them), in clusters of five (three tenths), and samples asked five times (eight tenths). n is
samples: 20 samples in clusters of five are four units. A row's cells are the lowest and the highest coverage over all
rates and shares.

95 % are promised, 93 to 98 % the reach. **wide** marks rows that are above it somewhere: few units, or few of either
answer, where only a wide interval holds what it promises; metrics of less than 30 units are not `reliable` then.
**short** marks rows that are below it somewhere, with the worst cell. With {least:,} samples the standard error of a
cell is about one point, so that the lowest of many would be below 93 % by chance: every such cell is simulated again
with {most:,} other samples, and these stand here. `rate` is Wilson's interval by definition, and a proportion has
jumps: of 50 rows at a rate of .98 Wilson's holds in 92.2 %, and what reaches one row further in 98.2 %. The uncertainty
of the Brier score follows from it. Samples without an interval are left out, such as counts that are all 0, which do
not tell how high a count can be; so are cells in which fewer than 1 in 20 samples has an interval.

| interval | rows | n = 20 | n = 50 | n = 200 | | worst, where short |
|---|---|---|---|---|---|---|"""

_CONCLUSIONS = """
## Tests and decisions

How often a conclusion errs where nothing is to be found, or finds what is there. Drift: answers with a score and a
verdict, some items noisier than others. Prediction-powered: a judge that finds 90 % of what is true and takes 30 % of
what is false for true. Families: every p adjusted by Holm. Decisions: a model whose true value is the target, to the
last digit, should be UNDECIDED; 2.5 % are promised on either side, and 5 % are the reach where the interval errs to
one side. **missed** marks what is beyond its reach by more than three standard errors.

| conclusion | in | simulations | reach | seen | |
|---|---|---|---|---|---|"""

_COMPARISONS = """
## Paired differences

Two models that share eight of ten clusters' answers, and differ by chance on the others: equal ones, and such that the
first has another tenth of its answers right; {each} comparisons of each, at rates of .02, .5 and .98. **Called
different**: how often equal models have a p below 5 %. **Holds**: how often the interval holds the true difference,
lowest and highest of the six cells, and on average; the standard error of a cell is nearly three points, so that the
lowest is below 93 % by chance, too. Intervals agree with p, which errs in far less than 5 % where few rows differ: so
they are wide there. In opposed twins a second sample is answered right where the first is not, in 85 of 100 pairs.

Before, with MOVER's interval everywhere, interval and p contradicted each other in 1,715 of these 28,800 comparisons,
now in none. Intervals held in 99.9 %, now in 99.8 %; at n = 50 their mean width was .250 for single rows and .302 for
opposed twins, now .200 and .222.

| of | rows | n | called different | holds | on average | mean width |
|---|---|---|---|---|---|---|"""
