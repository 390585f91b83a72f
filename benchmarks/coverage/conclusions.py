"""Conclusions: how often tests, families of tests, decisions and corrected rates err in many simulations."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.coverage.policies import (
    EITHER,
    MORE,
    YEAR,
    compared_with_missing,
    decided_with_missing,
    falling,
    heavy,
    lettered,
    settled_in_rounds,
    stratified,
    watched,
)
from benchmarks.coverage.populations import STRUCTURES, Floats, Population, Structure, unequal
from benchmarks.coverage.quantities import QUANTITIES, Quantity
from benchmarks.coverage.simulation import ALPHA, DRAWS, LEAST, SEED, Conclusion, models
from evalake.metrics.compare import compare, with_holm
from evalake.metrics.compute import Metric
from evalake.metrics.corrected import Corrected, ratio
from evalake.metrics.drift import Given, drift
from evalake.metrics.estimators import Rate
from evalake.metrics.limits import limits_of, measure_exact
from evalake.reports.ranking import Verdict, decide

RESAMPLES = 999
DECIDED = ("rate", "mean of scores", "mean of counts", "F1", "balanced accuracy", "Brier score", "SUI")
DECIDED_RATES = (0.5, 0.9, 0.98, 0.995)
DECIDED_SIZES = (30, 200)
DECIDED_STRUCTURES = (STRUCTURES[0], STRUCTURES[3])
UNEQUAL = (
    *DECIDED,
    "macro average",
    "mean without bounds",
    "standard deviation of scores",
    "standard deviation",
    "Pearson's correlation",
    "ECE",
    "ECE, debiased",
)
UNEQUAL_BEFORE = {"standard deviation": "4 to 8 %", "ECE, debiased": "4 to 5 %", "macro average": "up to 11 %"}
UNEQUAL_UNITS = (20, 25, 30, 50)
UNEQUAL_ALIKE = (0.0, 0.5, 0.9)
UNEQUAL_RATES = (0.5, 0.9)
UNEQUAL_DECISIONS = 8_000
DECISIONS = 25_000
"""Simulated models: a rate of 2.5 % has a standard error of 0.1 points."""
DRAWN = 500
"""Models that are in memory at once."""
BEFORE = {
    ("rate", 0.995, 30, "single", Verdict.FAIL): "14 %",
    ("balanced accuracy", 0.98, 30, "single", Verdict.FAIL): "7.1 %",
}
FAMILY = ("rate", "rate of what rows count", "mean of scores", "F1", "balanced accuracy")
FOUND = 0.8
ALIKE = 0.7
"""The share of a cluster's rows whose truth, and whose judge's errors, are drawn once: half of their pairs agree."""
SENSITIVITY, SPECIFICITY = 0.9, 0.7
"""Of the simulated judge whose verdicts people's labels correct: it errs more to one side than to the other."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Items that are asked twice: how often each time, how noisy answers are, and by how much the later ones moved."""

    items: int
    before: int
    after: int
    noise: float
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Labelled:
    """Samples with a judge's verdict, of which people label some: drawn alike, or more often where the judge errs."""

    samples: int
    labels: int
    rate: float
    informative: bool
    together: int = 1
    """Rows of one cluster, whose truth and whose judge's errors are the same in half of the cases."""


ASKED = (
    Asked(8, 5, 1, 0.05),
    Asked(8, 5, 1, 0.3),
    Asked(24, 3, 3, 0.1),
    Asked(24, 5, 1, 0.1, shift=0.3),
)
LABELLED = (
    *(Labelled(*each) for each in product((500,), (50, 200), (0.1, 0.5, 0.9), (False, True))),
    *(Labelled(500, 100, rate, False, together=5) for rate in (0.1, 0.5, 0.9)),
    Labelled(500, 20, 0.98, informative=False),
)


Simulation = Callable[[], Iterable[Conclusion]]


def conclusions(times: int) -> list[Simulation]:
    """List the simulations of every kind of conclusion, the longest ones first; most have `times` simulations."""
    return [
        *(partial(decisions, *each) for each in product(DECIDED_RATES, DECIDED_SIZES[::-1], DECIDED_STRUCTURES)),
        *(partial(unequal_decisions, *each) for each in product(UNEQUAL_UNITS[::-1], UNEQUAL_ALIKE, (False, True))),
        *(partial(watched, noise) for noise in YEAR),
        *(partial(decided_with_missing, kind, times) for kind in ("answers", "panels")),
        partial(compared_with_missing, times),
        *(partial(drifts, asked, times) for asked in ASKED),
        *(partial(corrected, labelled, times) for labelled in LABELLED),
        partial(lettered, times // 2),
        partial(settled_in_rounds, 4 * times),
        *(partial(simulate, times) for simulate in (falling, heavy)),
        partial(stratified, 2 * times),
        *(partial(family, Population(0.5, 0.5, structure), 50, times) for structure in DECIDED_STRUCTURES),
        *(
            partial(family, Population(0.8, 0.5, each), units * each.mean_size, times)
            for units, each in ((units, unequal(units, 0.5, heavy=True)) for units in (20, 50))
        ),
    ]


def drifts(asked: Asked, times: int) -> Iterator[Conclusion]:
    """Find how often the test of drift says that answers moved."""
    rng = np.random.default_rng([SEED, asked.items, asked.after, int(100 * asked.noise)])
    tests = (
        drift(_answers(rng, asked, asked.before, 0.0), _answers(rng, asked, asked.after, asked.shift), RESAMPLES)
        for _ in range(times)
    )
    share = float(np.mean([test.p_value < ALPHA for test in tests]))
    where = f"{asked.items} items, {asked.before} answers before, {asked.after} after, noise {asked.noise:g}"
    if asked.shift:
        yield Conclusion("drift that is there is found", f"{where}, moved by {asked.shift:g}", times, share, FOUND)
    else:
        yield Conclusion("drift is found where there is none", where, times, share, most=ALPHA)


def _answers(rng: np.random.Generator, asked: Asked, times: int, shift: float) -> list[list[Given]]:
    """Draw answers to every item, some items noisier than others; a verdict beside the score changes at times, too."""
    return [
        [
            {
                "score": float(np.clip(0.5 + shift + asked.noise * (1 + item % 3) * rng.normal(), 0, 1)),
                "vulnerable": bool(rng.random() < asked.noise),
            }
            for _ in range(times)
        ]
        for item in range(asked.items)
    ]


def corrected(labelled: Labelled, times: int) -> Iterator[Conclusion]:
    """Find how often the prediction-powered interval holds the true rate, and how often its limits decide wrongly."""
    rng = np.random.default_rng([SEED, labelled.labels, int(10 * labelled.rate), labelled.informative])
    cluster = np.arange(labelled.samples) // labelled.together
    alike = 0.0 if labelled.together == 1 else ALIKE

    def uniform() -> Floats:
        """Draw uniform values, a share of which are those of their cluster."""
        own, shared = rng.random(labelled.samples), rng.random(labelled.samples)[cluster]
        return np.where(rng.random(labelled.samples) < alike, shared, own)

    held = wrong = 0
    for _ in range(times):
        truth, random = uniform() < labelled.rate, uniform()
        judged = np.where(truth, random < SENSITIVITY, random > SPECIFICITY)
        doubtful = rng.random(labelled.samples) < np.where(truth != judged, 0.6, 0.2)
        weight = np.where(doubtful & labelled.informative, 4.0, 1.0)
        chance = np.minimum(1.0, labelled.labels * weight / weight.sum())
        chosen = drawn(chance, rng)
        human = truth[chosen].astype(float)
        known = ratio(judged.astype(float), np.ones(len(truth)), chosen, human, 1 / chance[chosen], cluster)
        assert known is not None
        held += known.ci_low <= labelled.rate <= known.ci_high
        ends = known.value, known.se, known.ci_low, known.ci_high
        low, high = limits_of(Corrected(*ends, known.units, "by people's labels"), Rate(pl.col("right")))
        wrong += low >= labelled.rate or high < labelled.rate
    how = "rather where the judge errs" if labelled.informative else "drawn alike"
    rows = "samples" if labelled.together == 1 else f"rows in clusters of {labelled.together}"
    where = f"rate {labelled.rate:g}, {labelled.labels} labels of {labelled.samples} {rows}, {how}"
    before = "48 to 79 %" if labelled.together > 1 else "86 to 91 %" if labelled.rate > 0.95 else ""
    yield Conclusion("a prediction-powered interval holds the rate", where, times, held / times, LEAST, before=before)
    name = "PASS or FAIL of a corrected rate exactly at its target"
    yield Conclusion(name, where, times, wrong / times, most=MORE * ALPHA)


def drawn(chance: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a systematic sample with these probabilities, in random order."""
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    places = np.searchsorted(ends, np.arange(rng.random(), ends[-1], 1.0))
    return np.unique(order[np.minimum(places, len(order) - 1)]).astype(np.int64)


def family(population: Population, size: int, times: int) -> Iterator[Conclusion]:
    """Find how often equal models differ significantly in any metric of a family, p adjusted by Holm."""
    metrics = [Metric(each.name, each.estimator) for each in _named(FAMILY)]
    rows = compare(*models(population, size, times, 0.0, SEED), metrics, cluster="cluster", pair="sample", draws=DRAWS)
    wrong = [bool((with_holm(of_one)["p_holm"] < ALPHA).any()) for of_one in rows.partition_by("judge")]
    where = f"{len(metrics)} metrics, rate {population.rate:g}, {population.structure.name}, n {size}"
    yield Conclusion("equal models differ in any of a family", where, times, float(np.mean(wrong)), most=ALPHA)


def decisions(
    rate: float, size: int, structure: Structure, times: int = DECISIONS, names: Sequence[str] = DECIDED
) -> Iterator[Conclusion]:
    """Find how often a model that is exactly at its target passes, and fails."""
    population = Population(rate, 0.5, structure)
    quantities = _named(names)
    metrics = [Metric(each.name, each.estimator) for each in quantities]
    counts = {each.name: Counter[Verdict]() for each in quantities}
    for first in range(0, times, DRAWN):
        measured = measure_exact(population.draw(size, min(DRAWN, times - first), SEED + 10 + first), metrics)
        for quantity in quantities:
            rows = measured.filter(pl.col("metric") == quantity.name).drop_nulls("value")
            ends = rows.select("value", "ci_low", "ci_high", "units").iter_rows()
            target = quantity.true(population)
            assert target is not None
            verdicts = (decide(value, low, high, units, target, fewest=0).verdict for value, low, high, units in ends)
            counts[quantity.name].update(verdicts)
    for name, of_quantity in counts.items():
        where = f"{name}, rate {rate:g}, {structure.name}, n {size}"
        for verdict in (Verdict.PASS, Verdict.FAIL):
            before = BEFORE.get((name, rate, size, structure.name, verdict), "")
            share = of_quantity[verdict] / of_quantity.total()
            what = f"{verdict} of a model exactly at its target"
            yield Conclusion(what, where, of_quantity.total(), share, most=MORE * EITHER, before=before)


def unequal_decisions(units: int, alike: float, heavy: bool, times: int = UNEQUAL_DECISIONS) -> Iterator[Conclusion]:
    """Find how often models exactly at their target pass and fail over few clusters of unequal size."""
    structure = unequal(units, alike, heavy=heavy)
    for rate in UNEQUAL_RATES:
        for each in decisions(rate, units * structure.mean_size, structure, times, UNEQUAL):
            name, kind = f"{each.name}, few unequal clusters", each.where.split(", rate")[0]
            yield replace(each, name=name, kind=kind, before=UNEQUAL_BEFORE.get(kind, ""))


def _named(names: Sequence[str]) -> list[Quantity]:
    return [quantity for quantity in QUANTITIES if quantity.name in names]
