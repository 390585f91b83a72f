"""A seeded part of `python -m benchmarks coverage`: every kind of interval holds the value as often as it promises."""

from itertools import chain

import pytest

from benchmarks.coverage.conclusions import ASKED, FOUND, LABELLED, corrected, decisions, drifts, family
from benchmarks.coverage.policies import decided_with_missing, lettered, settled_in_rounds, stratified
from benchmarks.coverage.populations import COMPARED_STRUCTURES, STRUCTURES, Population
from benchmarks.coverage.quantities import QUANTITIES
from benchmarks.coverage.simulation import LEAST, MARKED, cells, compared

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


@pytest.mark.slow
def test_conclusions_err_no_more_often_than_they_promise() -> None:
    simulated = [
        *chain.from_iterable(drifts(asked, 60) for asked in ASKED),
        *chain.from_iterable(corrected(labelled, 200) for labelled in LABELLED[::5]),
        *settled_in_rounds(1_000),
        *stratified(100),
        *lettered(20),
        *(each for kind in ("answers", "panels") for each in decided_with_missing(kind, 20)),
        *family(Population(0.5, 0.5, STRUCTURES[3]), 50, 60),
        *(each for rate in (0.9, 0.98) for each in decisions(rate, 30, STRUCTURES[0], 2_000)),
    ]
    assert [each for each in simulated if not each.kept] == []
    by_kind = {each.where: each.share for each in simulated if each.name == "a wrong verdict of rounds"}
    assert max(by_kind.values()) > 0.5  # of replies that hang together in time, of which nothing is promised
    assert sum(each.least == FOUND for each in simulated) == 1
