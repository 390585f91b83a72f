"""The table of coverage in the docs: a row for each kind of interval and structure, a column for each size."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean

from benchmarks.coverage.populations import SIZES, STRUCTURES
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, MARKED, MOST, Cell, Compared, Conclusion

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WIDE, SHORT, KNOWN_SHORT = "wide", "short", "short, marked"
BEFORE = {each.name: each.before for each in QUANTITIES}


def write(
    cells: Sequence[Cell], concluded: Sequence[Conclusion], compared: Sequence[Compared], path: Path = PAGE
) -> None:
    """Write the page: coverage of every interval, errors of conclusions, and paired differences."""
    head = _HEAD.format(least=min(cell.times for cell in cells), most=max(cell.times for cell in cells))
    comparisons = _COMPARISONS.format(each=compared[0].times)
    parts = [head, *_rows(cells), _CONCLUSIONS, *_concluded(concluded), comparisons, *_compared(compared), ""]
    path.write_text("\n".join(parts))


def mark(cells: Iterable[Cell]) -> str:
    """Say whether intervals are too short in some cell, and whether all such are marked; or wide in some."""
    known = list(cells)
    if short := [each for each in known if each.coverage < LEAST]:
        return KNOWN_SHORT if all(each.marked >= MARKED for each in short) else SHORT
    return WIDE if any(each.coverage > MOST for each in known) else ""


def _rows(cells: Sequence[Cell]) -> Iterable[str]:
    for name, structure in product((each.name for each in QUANTITIES), (each.name for each in STRUCTURES)):
        of = [cell for cell in cells if (cell.name, cell.population.structure.name) == (name, structure)]
        if not of:
            continue
        columns = [_range([cell.coverage for cell in of if cell.size == size]) for size in SIZES]
        lowest = min(of, key=lambda cell: (cell.marked >= MARKED, cell.coverage))
        lowest = lowest if lowest.coverage < LEAST else min(of, key=lambda cell: cell.coverage)
        where = (
            f"{lowest.coverage:.1%} at {lowest.population.rate:g}, n {lowest.size}" if lowest.coverage < LEAST else ""
        )
        before = BEFORE.get(name, "")
        yield f"| {name} | {structure} | {' | '.join(columns)} | {mark(of)} | {where} | {before} |"


def _concluded(concluded: Sequence[Conclusion]) -> Iterable[str]:
    worst: dict[tuple[str, str], Conclusion] = {}
    for each in sorted(concluded, key=lambda each: each.share):
        worst[each.name, each.kind or each.where] = each
    shown = [each for each in concluded if worst[each.name, each.kind or each.where] is each]
    for each in sorted(shown, key=lambda each: each.name):
        bound = f"at most {100 * each.most:.3g} %" if each.most < 1 else f"at least {each.least:.0%}"
        reach = bound if each.most < 1 or each.least else "none"
        missed = "" if each.kept else "missed"
        row = each.name, each.where, f"{each.times:,}", reach, each.before, f"{each.share:.1%}", missed
        yield f"| {' | '.join(row)} |"


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


_HEAD = """# Coverage: how often an interval holds the true value

Written by `python -m benchmarks coverage`: {least:,} samples of every size from each of 50 populations. Rates are
.02, .1, .5, .9 and .98, with vulnerable samples balanced and 1:9 where that matters. Rows are single, in pairs
(half of the variance between them), in clusters of five (three tenths), five repeats of a sample (eight tenths), or
in unequal clusters of 1, 1, 4 and 14. n counts samples: 20 samples in clusters of five are four units. A row's cells
show the lowest and the highest coverage over all rates and shares. Calibrated models are right as often as they say,
so that their calibration error is 0. Heavy amounts are log-normal with a deviation of 2.

95 % are promised; 93 to 98 % are accepted. **wide** marks rows above that in some cell: few units, or few of either
answer, where only a wide interval keeps the promise. Metrics with fewer than 30 units are not `reliable` then.
**short** marks rows below it in some cell, with the worst cell; **short, marked** those in which `reliable` is false
in 9 of 10 such samples or more. **Before** is what was simulated before an interval was mended. With {least:,} samples
the standard error of a cell is about one point, so the lowest of many cells would be below 93 % by chance. Every such
cell is simulated again with {most:,} other samples, shown here.

`rate` is Wilson's interval by definition, and a proportion has jumps: of 50 rows at a rate of .98 Wilson's holds in
92.2 %, and an interval that reaches one row further in 98.2 %. The uncertainty of the Brier score follows from it.
Left out are samples without an interval, like counts that are all 0, and cells in which fewer than 1 in 20 samples
has an interval.

| interval | rows | n = 20 | n = 50 | n = 200 | | worst, where short | before |
|---|---|---|---|---|---|---|---|"""

_CONCLUSIONS = """
## Tests and decisions

How often a conclusion errs without an effect, or finds an effect. Drift: answers with a score and a verdict, some
items noisier than others. Prediction-powered: a judge that finds 90 % of true cases, and calls 30 % of false ones
true. Families: every p adjusted by Holm. Decisions: a model whose true value is exactly the target should be
UNDECIDED; 2.5 % are promised on either side, and 1.1 times that is accepted. The target is the population's value, by
its formula. Few unequal clusters: 20, 25, 30 or 50, of 1 to 12 samples, or of 2 but for one with a third of all, with
a correlation within clusters of 0, .5 or .9, at rates of .5 and .9. Each quantity shows the worst of these
48 populations. Rounds: a rule about a rate that is
exactly its number. Of clusters that nobody declared rounds promise nothing beyond the samples that they draw from,
and of replies that hang together in time nothing at all. **Before** is what was simulated before a conclusion was
mended. **missed** marks shares beyond the accepted one by more than three standard errors.

| conclusion | in | simulations | reach | before | seen | |
|---|---|---|---|---|---|---|"""

_COMPARISONS = """
## Paired differences

Two models share eight of ten clusters' answers, and differ by chance on the others. They are equal, or the first
has another tenth of its answers right; {each} comparisons of each, at rates of .02, .5 and .98. **Called
different**: how often equal models have a p below 5 %. **Holds**: how often the interval holds the true difference,
lowest and highest of the six cells, and on average. The standard error of a cell is nearly three points, so the
lowest is below 93 % by chance too. Intervals agree with p, which errs in far less than 5 % if few rows differ: so
they are wide there. In opposed twins a second sample is answered right if the first is not, in 85 of 100 pairs.

| of | rows | n | called different | holds | on average | mean width |
|---|---|---|---|---|---|---|"""
