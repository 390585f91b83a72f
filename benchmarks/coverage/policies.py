"""Policies: how often decisions err over missing answers, panels, many models, rounds of samples, and nights."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.coverage.populations import Floats
from benchmarks.coverage.simulation import ALPHA, LEAST, SEED, Conclusion
from evalake.decisions.sample_size import sizes
from evalake.metrics.columns import STRATUM
from evalake.metrics.compare import SIGNIFICANT_BELOW, compare
from evalake.metrics.compute import Metric, measure
from evalake.metrics.drift import FALSE_ALARMS_A_YEAR, moved
from evalake.metrics.estimators import Mean, Rate
from evalake.metrics.limits import (
    Answered,
    bounds_of_differences,
    clopper_pearson,
    left_open,
    measure_exact,
    open_bounds,
    widened,
)
from evalake.metrics.power import Anytime
from evalake.reports.ranking import Verdict, compare_all, decide, decide_whatever_is_missing

EITHER = ALPHA / 2
MORE = 1.1
"""By how much an error may be above what is promised."""

ASKED, TARGET = 200, 0.8
GONE_IF_WRONG, GONE_IF_RIGHT = 0.6, 0.05
NIGHTS = 365
YEARS = 50_000
"""Simulated series of nights: a rate of 5 % has a standard error of 0.1 points."""
LOST = 0.15
SETTLED = 500
MODELS = 6

RIGHT = Metric("rate", Rate(pl.col("right")))

Bools = NDArray[np.bool_]


def decided_with_missing(kind: str, times: int) -> Iterator[Conclusion]:
    """Find how often models exactly at their target pass and fail, if wrong answers are missing rather than right ones.

    Answers are not there at all; panels without a majority are there, without a decision.
    """
    rng = np.random.default_rng([SEED, ASKED, times])
    right = rng.random((times, ASKED)) < TARGET
    gone = rng.random(right.shape) < np.where(right, GONE_IF_RIGHT, GONE_IF_WRONG)
    verdicts, of_known = [], []
    for of_model, lacks in zip(_frames(right), gone, strict=True):
        known = of_model.filter(~pl.Series(lacks))
        opened = of_model.filter(pl.Series(lacks)).with_columns(right=pl.lit(None, pl.Boolean))
        if kind == "panels":
            known = pl.concat([known, opened])
        (row,) = measure_exact(known, [RIGHT]).iter_rows(named=True)
        ends = open_bounds(known, RIGHT, (0, opened) if kind == "panels" else (int(lacks.sum()), None))
        verdicts.append(decide_whatever_is_missing(row, widened(row, RIGHT, ends), TARGET).verdict)
        of_known.append(decide(row["value"], row["ci_low"], row["ci_high"], row["units"], TARGET).verdict)
    what = "panels undecided" if kind == "panels" else "answers missing"
    where = f"{what}: {GONE_IF_WRONG:.0%} of wrong, {GONE_IF_RIGHT:.0%} of right, rate {TARGET:g}, n {ASKED}"
    for verdict in (Verdict.PASS, Verdict.FAIL):
        share = verdicts.count(verdict) / times
        before = f"{of_known.count(verdict) / times:.0%} by what is known"
        yield Conclusion(f"{verdict} whatever is missing", where, times, share, most=MORE * EITHER, before=before)


def _frames(right: Bools) -> Iterator[pl.DataFrame]:
    samples = [f"s{n}" for n in range(right.shape[1])]
    for number, of_model in enumerate(right):
        frame = pl.DataFrame({"right": of_model, "sample_hash": samples, "cluster": samples})
        yield frame.with_columns(model=pl.lit(str(number)), judge=pl.lit(None, pl.String))


def compared_with_missing(times: int) -> Iterator[Conclusion]:
    """Find how often equal models differ significantly, where one lacks wrong answers rather than right ones."""
    rng = np.random.default_rng([SEED, ASKED, times, 2])
    wrong = 0
    for _ in range(times):
        both = rng.random((2, ASKED)) < TARGET
        gone = rng.random(ASKED) < np.where(both[0], GONE_IF_RIGHT, GONE_IF_WRONG)
        first, second = _frames(both)
        known = first.filter(~pl.Series(gone))
        (row,) = compare(known, second, [RIGHT], cluster="cluster", pair="sample_hash").iter_rows(named=True)
        sides = Answered(known, first["sample_hash"].filter(pl.Series(gone)).to_list()), Answered(second)
        ((low, high),) = bounds_of_differences([row["difference"]], [RIGHT], *sides)
        held = left_open(row | {"bound_low": low, "bound_high": high})
        wrong += held["p"] is not None and held["p"] < SIGNIFICANT_BELOW
    where = f"one lacks {GONE_IF_WRONG:.0%} of its wrong answers, rate {TARGET:g}, n {ASKED}"
    yield Conclusion("equal models differ, whatever is missing", where, times, wrong / times, most=ALPHA, before="most")


def lettered(times: int) -> Iterator[Conclusion]:
    """Find how often any two of six equal models have no letter in common."""
    rng = np.random.default_rng([SEED, MODELS])
    for size, rate in ((30, 0.9), (100, 0.5)):
        right = rng.random((MODELS, times, size)) < rate
        shape = right.shape
        grid = np.indices(shape).reshape(3, -1).astype(str)
        names = {"model": grid[0], "judge": grid[1], "sample_hash": grid[2], "cluster": grid[2]}
        compared = compare_all(pl.DataFrame({**names, "right": right.ravel()}), RIGHT)
        apart = [any(each.apart for each in of_one) for of_one in compared.values()]
        where = f"{MODELS} models, rate {rate:g}, n {size}"
        share = float(np.mean(apart))
        before = "21 to 81 % of pairs in different bands"
        yield Conclusion("equal models without a common letter", where, times, share, most=MORE * ALPHA, before=before)


def settled_in_rounds(times: int) -> Iterator[Conclusion]:
    """Find how often rounds settle wrongly, of a rate exactly at the rule's number: clusters that nobody declared.

    Rounds hold for the samples that they are drawn from, whose order is shuffled: there a cluster's replies hang
    together as little as others do. Of further samples, and of replies that hang together in time, nothing is promised.
    """
    rng = np.random.default_rng([SEED, SETTLED])
    shared = rng.random((times, SETTLED // 5))[:, np.arange(SETTLED) // 5]
    together = np.where(rng.random((times, SETTLED)) < np.sqrt(0.5), shared, rng.random((times, SETTLED))) < TARGET
    shuffled = rng.permuted(together, axis=1)
    state = np.repeat(rng.random((times, SETTLED // 50 + 1)), 50, axis=1)[:, :SETTLED]
    in_time = rng.random((times, SETTLED)) < np.where(state < TARGET, 0.95, 0.2)
    own = "of the samples that rounds are drawn from"
    cases = (
        ("independent", rng.random((times, SETTLED)) < TARGET, None, MORE * ALPHA, ""),
        (f"unknown clusters of 5 (icc .5), shuffled, {own}", shuffled, shuffled.mean(axis=1), MORE * ALPHA, "31 %"),
        ("unknown clusters of 5 (icc .5), of further samples", shuffled, None, 1.0, "31 %"),
        ("correlated in time", in_time, np.full(times, 0.95 * TARGET + 0.2 * (1 - TARGET)), 1.0, "82 %"),
    )
    for name, right, truth, most, before in cases:
        share = _errs(right, np.full(times, TARGET) if truth is None else truth)
        where = f"{name}, {len(sizes(SETTLED))} rounds up to {SETTLED}"
        yield Conclusion("a wrong verdict of rounds", where, times, share, most=most, before=before)


def _errs(right: Bools, truth: Floats) -> float:
    """Compute how often the truth is outside the limits of any round that has samples left to ask."""
    outside = np.zeros(len(right), dtype=np.bool_)
    for size in sizes(SETTLED)[:-1]:
        value = right[:, :size].mean(axis=1)
        low, high = clopper_pearson(value * size, np.full(len(right), float(size)))
        factor = Anytime(SETTLED).factor(size)
        outside |= (value - factor * (value - low) > truth) | (value + factor * (high - value) < truth)
    return float(outside.mean())


YEAR: Mapping[str, Callable[[np.random.Generator], Floats]] = {
    "normal noise": lambda rng: rng.standard_normal(NIGHTS),
    "200 samples, rate 0.85": lambda rng: rng.binomial(200, 0.85, NIGHTS) / 200,
    "rare flips": lambda rng: np.where(rng.random(NIGHTS) < 0.05, 0.905, 0.9),
    "heavy tails": lambda rng: rng.standard_t(3, NIGHTS),
}
"""A year of nights without a change, by its noise."""


def watched(noise: str, times: int = YEARS) -> Iterator[Conclusion]:
    """Find how often a year of nights without a change is called one."""
    rng = np.random.default_rng([SEED, NIGHTS, *map(ord, noise)])
    share = float(np.mean([moved(YEAR[noise](rng).tolist()) is not None for _ in range(times)]))
    name, before = "an alarm in a year without a change", "62 to 83 % in 60 nights"
    most = MORE * FALSE_ALARMS_A_YEAR
    yield Conclusion(name, f"{NIGHTS} nights, {noise}", times, share, most=most, before=before)


def falling(times: int) -> Iterator[Conclusion]:
    """Find how often a slow loss is found."""
    rng = np.random.default_rng([SEED, NIGHTS])
    nights = rng.binomial(200, 0.85 - LOST * np.arange(60) / 60, (times, 60)) / 200
    share = float(np.mean([moved(each.tolist()) is not None for each in nights]))
    where = f"200 samples a night, {LOST:g} lost in 60 nights"
    yield Conclusion("a slow loss is found", where, times, share, least=0.95, before="5 % of steps")


def heavy(times: int) -> Iterator[Conclusion]:
    """Find how often means of amounts of one expectation, but unequal tails, differ significantly."""
    rng = np.random.default_rng([SEED, times, 7])
    metric, wrong = Metric("amount", Mean(pl.col("amount"), low=0)), 0
    names = [f"s{n}" for n in range(100)]
    for _ in range(times):
        a, b = (
            pl.DataFrame({"amount": amounts, "sample_hash": names, "cluster": names}).with_columns(judge=pl.lit("j"))
            for amounts in (rng.lognormal(-2.0, 2.0, 100), rng.lognormal(-0.125, 0.5, 100))
        )
        (row,) = compare(a, b, [metric], cluster="cluster", pair="sample_hash", draws=499).iter_rows(named=True)
        wrong += row["p"] is not None and row["p"] < SIGNIFICANT_BELOW
    where = "log-normal of deviations 2 and .5, n 100"
    yield Conclusion(
        "amounts of equal mean differ", where, times, wrong / times, most=MORE * ALPHA, before="13 to 28 %"
    )


def stratified(times: int) -> Iterator[Conclusion]:
    """Find how often the interval of a stratified draw holds, and equal models on such a draw differ significantly.

    The models differ in every stratum, one way in the first and the other way in the second.
    """
    rng = np.random.default_rng([SEED, 14, times])
    for rates, each in (((0.95, 0.05), 25), ((0.9, 0.5, 0.1), 40)):
        size = len(rates) * each
        stratum = np.repeat(np.arange(len(rates)), each)
        grid = np.indices((times, size)).reshape(2, -1)
        named = {"judge": grid[0].astype(str), "cluster": grid[1], "sample": grid[1]}
        named |= {STRATUM: np.tile(stratum, times).astype(str)}
        a, b = (
            pl.DataFrame({**named, "right": (rng.random((times, size)) < np.array(of)[stratum]).ravel()})
            for of in (rates, rates[::-1])
        )
        measured = measure(a, [RIGHT], groups=("judge",), cluster="cluster")
        true = float(np.mean(rates))
        held = measured.select(((pl.col("ci_low") <= true) & (true <= pl.col("ci_high"))).mean()).item()
        where = f"rates {', '.join(map(str, rates))} in strata of {each}"
        yield Conclusion("an interval of a stratified draw holds the rate", where, times, float(held), LEAST)
        rows = compare(a, b, [RIGHT], cluster="cluster", pair="sample")
        wrong = float(rows.select((pl.col("p") < SIGNIFICANT_BELOW).mean()).item())
        yield Conclusion("equal models differ on a stratified draw", where, times, wrong, most=MORE * ALPHA)
