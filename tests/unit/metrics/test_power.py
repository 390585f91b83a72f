"""Plans hold: variance components are found again, and as many samples as planned find a difference as often."""

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.power import TTestPower

from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Mean, Rate
from evalake.metrics.power import components, detectable, required


def asked(units: int, repeats: int, between: float, within: float, seed: int) -> pl.DataFrame:
    """Answers of two models whose difference varies between units and repeats by these standard deviations."""
    random = np.random.default_rng(seed)
    shared, apart = random.normal(0, 1, units), random.normal(0, between, units)
    frames = []
    for model, sign in (("a", 0.5), ("b", -0.5)):
        for repeat in range(repeats):
            score = shared + sign * apart + random.normal(0, within / 2**0.5, units)
            rows = {"cluster": [f"c{n}" for n in range(units)], "score": score}
            frames.append(pl.DataFrame(rows).with_columns(model=pl.lit(model), replicate=repeat))
    return pl.concat(frames).with_columns(judge=pl.lit(None, pl.String))


@pytest.mark.parametrize("repeats", [2, 5])
def test_components_are_found_again(repeats: int) -> None:
    (found,) = components(asked(3000, repeats, 0.4, 0.7, seed=repeats), Metric("score", Mean(pl.col("score"))))
    assert (found.units, found.replicates) == (3000, repeats)
    assert found.within is not None
    assert found.between**0.5 == pytest.approx(0.4, rel=0.1)
    assert found.within**0.5 == pytest.approx(0.7, rel=0.05)


def test_without_repeats_their_noise_is_unknown() -> None:
    (found,) = components(asked(3000, 1, 0.4, 0.7, seed=1), Metric("score", Mean(pl.col("score"))))
    assert (found.within, found.variance(2)) == (None, None)
    assert found.variance(1) == pytest.approx(0.4**2 + 0.7**2, rel=0.1)


def test_a_rates_variance_is_that_of_its_flips() -> None:
    frame = asked(1000, 1, 1.0, 0.0, seed=2).with_columns(right=pl.col("score") > 0)
    wide = frame.pivot("model", index="cluster", values="right")
    flips = wide["a"].cast(pl.Float64) - wide["b"].cast(pl.Float64)
    (found,) = components(frame, Metric("rate", Rate(pl.col("right"))))
    assert found.between == pytest.approx(flips.var(ddof=1), rel=1e-9)


@pytest.mark.parametrize(("difference", "power"), [(0.03, 0.8), (0.1, 0.9)])
def test_the_plan_is_that_of_statsmodels(difference: float, power: float) -> None:
    units = required(0.3**2, difference, power)
    assert units == pytest.approx(TTestPower().solve_power(difference / 0.3, alpha=0.05, power=power), abs=3)
    assert detectable(0.3**2, units, power) == pytest.approx(difference, rel=0.01)


def test_as_many_samples_find_the_difference_as_often_as_planned() -> None:
    random = np.random.default_rng(20_240_601)
    gains, losses = 0.08, 0.04  # of the samples, each model alone is right
    units = required(gains + losses - (gains - losses) ** 2, gains - losses, 0.8)
    counts = random.multinomial(units, [gains, losses, 1 - gains - losses], size=2000)
    mean = (counts[:, 0] - counts[:, 1]) / units
    error = np.sqrt(((counts[:, 0] + counts[:, 1]) / units - mean**2) / units)
    assert np.mean(mean / error > 1.96) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("pilot", [50, 200])
@pytest.mark.parametrize("flips", [0.06, 0.12, 0.4])
def test_the_range_of_a_plan_holds_the_right_one_as_often_as_promised(pilot: int, flips: float) -> None:
    """Pilots in which nothing differs plan nothing, and are left out."""
    random, held, times = np.random.default_rng([pilot, int(100 * flips)]), 0, 150
    right = required(flips, 0.02, 0.8)
    for _ in range(times):
        kind = np.zeros(pilot)
        while not kind.any():
            kind = random.choice([0, 1, -1], pilot, p=[1 - flips, flips / 2, flips / 2])
        sides = [
            pl.DataFrame({"right": kind != wrong, "cluster": np.arange(pilot)}).with_columns(
                model=pl.lit(model), replicate=0, judge=pl.lit(None, pl.String)
            )
            for model, wrong in (("a", -1), ("b", 1))
        ]
        (found,) = components(pl.concat(sides), Metric("rate", Rate(pl.col("right"))))
        low, high = (required(found.between * end, 0.02, 0.8) for end in found.spread)
        held += low <= right <= high
    assert held / times >= 0.925 - 2 * (0.925 * 0.075 / times) ** 0.5
