"""A seeded part of `python -m benchmarks coverage`: every kind of interval holds the value as often as it promises."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.coverage.conclusions import ASKED, FOUND, LABELLED, corrected, decisions, drifts, family
from benchmarks.coverage.page import mark, write
from benchmarks.coverage.policies import decided_with_missing, lettered, settled_in_rounds, stratified
from benchmarks.coverage.populations import COMPARED_STRUCTURES, STRUCTURES, Population
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, MARKED, Cell, Compared, Conclusion, cells, compared, settled

TIMES = 100
CHANCE = 3 * (LEAST * (1 - LEAST) / TIMES) ** 0.5
"""Three standard errors of a coverage that is just within reach."""


@pytest.mark.slow
@pytest.mark.parametrize("structure", [STRUCTURES[0], STRUCTURES[3]], ids=lambda structure: structure.name)
def test_every_interval_holds_the_true_value_nearly_as_often_as_it_promises(structure: object) -> None:
    chosen = [each for each in STRUCTURES if each == structure]
    simulated = list(cells(TIMES, sizes=(50,), rates=(0.5, 0.9), structures=chosen, whole=20_000))
    short = {
        (cell.name, cell.population.rate): cell.coverage
        for cell in simulated
        if cell.coverage < LEAST - CHANCE and cell.marked < MARKED
    }
    assert short == {}
    assert {cell.name for cell in simulated} >= {each.name for each in QUANTITIES if not each.repeats_only}


def test_equal_models_are_rarely_called_different_and_a_difference_is_in_its_interval() -> None:
    chosen = [each for each in QUANTITIES if each.name in ("rate", "balanced accuracy")]
    for equal in compared(chosen, Population(0.5, 0.5, STRUCTURES[3]), 40, 100, whole=20_000):
        assert equal.significant <= 0.06
        assert equal.coverage >= LEAST
    for structure in (STRUCTURES[0], COMPARED_STRUCTURES[-1]):
        for better in compared(chosen, Population(0.5, 0.5, structure), 100, 60, lift=0.2, whole=20_000):
            assert better.significant > 0.06
            assert better.coverage >= LEAST - CHANCE


def test_few_counts_that_hang_together_reach_as_far_as_an_unseen_unit_may() -> None:
    chosen = [each for each in QUANTITIES if each.name == "mean of counts"]
    simulated = list(cells(300, chosen, rates=(0.02,), structures=STRUCTURES[1:4], whole=50_000))
    assert len(simulated) == 9
    assert min(cell.coverage for cell in simulated) >= LEAST - 3 * (LEAST * (1 - LEAST) / 300) ** 0.5


def test_what_came_out_short_by_chance_is_simulated_again() -> None:
    rate = next(cells(50, QUANTITIES[:1], (50,), (0.5,), STRUCTURES[:1], whole=20_000))
    assert list(settled([rate], 200)) == [rate]
    (again,) = settled([replace(rate, coverage=0.5)], 200, whole=20_000)
    assert (again.name, again.population, again.size, again.times) == (rate.name, rate.population, rate.size, 200)
    assert again.coverage > 0.9


@pytest.mark.slow
def test_conclusions_err_no_more_often_than_they_promise() -> None:
    simulated = [
        *(drifts(asked, 60) for asked in ASKED),
        *(corrected(labelled, 200) for labelled in LABELLED[::5]),
        *settled_in_rounds(1_000),
        *stratified(100),
        *lettered(20),
        *(each for kind in ("answers", "panels") for each in decided_with_missing(kind, 20)),
        family(Population(0.5, 0.5, STRUCTURES[3]), 50, 60),
        *decisions(Population(0.9, 0.5, STRUCTURES[3]), 50, 200),
    ]
    assert [each for each in simulated if not each.kept] == []
    by_kind = {each.where: each.share for each in simulated if each.name == "a wrong verdict of rounds"}
    assert max(by_kind.values()) > 0.5  # of replies that hang together in time, of which nothing is promised
    assert sum(each.least == FOUND for each in simulated) == 1


def test_the_page_marks_what_is_short_and_what_is_wide(tmp_path: Path) -> None:
    path = tmp_path / "coverage.md"
    population = Population(0.02, 0.5, STRUCTURES[0])
    of = {"good": 0.95, "narrow": 0.9, "broad": 0.99}
    simulated = [Cell(name, population, 50, coverage, 0.1, 500) for name, coverage in of.items()]
    paired = [Compared("rate", population, 50, *each, 60) for each in ((0.0, 0.04, 0.96, 0.2), (0.1, 0.5, 0.92, 0.4))]
    concluded = [Conclusion("drift", "8 items", 400, share, most=0.05, before="20 %") for share in (0.04, 0.2)]
    write(simulated, concluded, paired, path)
    lines = path.read_text().splitlines()
    assert [mark([cell]) for cell in simulated] == ["", "short", "wide"]
    assert "| narrow | single | – | 90.0% – 90.0% | – | short | 90.0% at 0.02, n 50 |  |" in lines
    assert "| rate | single | 50 | 4.0% | 92.0% – 96.0% at 0.02 | 94.0% | 0.300 |" in lines
    assert "| drift | 8 items | 400 | at most 5 % | 20 % | 4.0% |  |" in lines
    assert "| drift | 8 items | 400 | at most 5 % | 20 % | 20.0% | missed |" in lines
