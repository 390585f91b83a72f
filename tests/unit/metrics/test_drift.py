"""Drift: false alarms as often as the level says, whatever the noise; changes found in whichever direction."""

from collections.abc import Sequence
from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.metrics.drift import FALSE_ALARMS_A_YEAR, Given, Moved, distances, drift, moved

RNG = np.random.default_rng(7)


def answers(items: int, times: int, shift: float = 0.0, noise: float = 0.0) -> list[list[Given]]:
    """Answers around a half, some items noisier than others."""
    return [
        [{"score": float(np.clip(0.5 + shift + noise * (1 + n % 3) * RNG.normal(), 0, 1))} for _ in range(times)]
        for n in range(items)
    ]


def constant(items: int, times: int, changed: int = 0) -> list[list[Given]]:
    return [[{"verdict": "other" if n < changed else "safe", "score": 0.5}] * times for n in range(items)]


@pytest.mark.slow
def test_without_a_change_it_is_wrong_no_more_often_than_its_level_says() -> None:
    trials = 200
    found = [drift(answers(6, 5, noise=0.05), answers(6, 1, noise=0.05), resamples=499) for _ in range(trials)]
    for level in (0.05, 0.2, 0.5):
        wrong = sum(each.p_value <= level for each in found)
        spread = (trials * level * (1 - level)) ** 0.5
        assert trials * level - 4 * spread < wrong < trials * level + 4 * spread


def test_answers_that_never_differ_are_no_drift() -> None:
    found = drift(constant(8, 5), constant(8, 1))
    assert (found.distance, found.noise, found.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [1, 2])
def test_of_a_judge_without_noise_the_p_value_is_known(changed: int) -> None:
    # The changed answer of each item is the later one by a chance of one in six.
    assert drift(constant(8, 5), constant(8, 1, changed)).p_value == pytest.approx(6.0**-changed, rel=0.1)
    # Five against five: only the two splits without mixture are as far apart, of all ten over five.
    expected = (2 / comb(10, 5)) ** changed
    assert drift(constant(8, 5), constant(8, 5, changed)).p_value == pytest.approx(expected, rel=0.15, abs=1.2e-4)


def test_shifts_that_cancel_out_are_found() -> None:
    before, after = answers(8, 5, noise=0.02), [*answers(4, 1, 0.3, 0.02), *answers(4, 1, -0.3, 0.02)]
    assert drift(before, after).p_value < 0.001


def test_the_same_answers_give_the_same_p_value() -> None:
    before, after = answers(8, 5, noise=0.1), answers(8, 1, noise=0.1)
    assert drift(before, after, resamples=999) == drift(before, after, resamples=999)


def test_a_small_shift_of_all_items_is_found() -> None:
    before, after = answers(24, 5, noise=0.03), answers(24, 1, 0.06, noise=0.03)  # one standard deviation on the mean
    found = drift(before, after)
    assert found.p_value < 0.01
    assert 0.02 < found.shift < 0.1


def test_p_values_are_shares_of_all_orders() -> None:
    """Against every order of two small items, counted one by one."""
    before, after = [[0.1, 0.25, 0.3], [0.8, 0.5, 0.55]], [[0.7], [0.4]]
    given_ = [[[{"x": x} for x in item] for item in side] for side in (before, after)]

    def statistics(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
        items = (first, second)
        apart = np.mean([abs(item[0] - x) for item in items for x in item[1:]])
        return float(apart), abs(float(np.mean([item[0] - np.mean(item[1:]) for item in items])))

    orders = [
        statistics(*pair)
        for pair in product(*(permutations([*new, *old]) for new, old in zip(after, before, strict=True)))
    ]
    scaled = (np.array(orders) - np.mean(orders, axis=0)) / np.std(orders, axis=0)
    largest = scaled.max(axis=1)
    assert drift(*given_).p_value == pytest.approx(np.mean(largest >= largest[0] - 1e-9))  # type: ignore[arg-type]


def test_noisy_words_hide_no_shift_of_scores() -> None:
    """One standard deviation of the scores' noise, beside words that differ each time; and no alarm without it."""
    random = np.random.default_rng(13)

    def judged(times: int, shift: float) -> list[list[Given]]:
        def given_() -> Given:
            words = {f"word {n}": str(random.integers(4)) for n in range(4)}
            return {"score": float(np.clip(0.5 + shift + 0.05 * random.normal(), 0, 1)), **words}

        return [[given_() for _ in range(times)] for _ in range(24)]

    found = sum(drift(judged(5, 0), judged(5, 0.05), resamples=499).p_value <= 0.05 for _ in range(10))
    wrong = sum(drift(judged(5, 0), judged(5, 0.0), resamples=499).p_value <= 0.05 for _ in range(40))
    assert found >= 9
    assert wrong <= 1.1 * 2 + 2 * (0.05 * 0.95 * 40) ** 0.5


GIVEN = st.fixed_dictionaries(
    {"share": st.none() | st.floats(0, 1), "word": st.none() | st.sampled_from(["a", "b"]), "flag": st.booleans()}
)


@given(st.lists(GIVEN, min_size=1, max_size=5))
def test_distances_are_distances(given_: Sequence[Given]) -> None:
    apart = distances(given_)
    assert np.array_equal(apart, apart.T)
    assert not np.diagonal(apart).any()
    assert ((apart >= 0) & (apart <= 1)).all()


def test_what_is_unknown_is_as_far_from_a_number_as_can_be() -> None:
    assert distances([{"share": None, "word": "a"}, {"share": 0.0, "word": "a"}])[0, 1] == 0.5


NIGHTS = {
    "normal": lambda random, nights: random.standard_normal(nights),
    "rare flips": lambda random, nights: random.poisson(0.1, nights).astype(float),
    "answers to 200 samples": lambda random, nights: random.binomial(200, 0.8, nights) / 200,
    "heavy tails": lambda random, nights: random.standard_t(3, nights),
}


@pytest.mark.parametrize("kind", NIGHTS)
def test_unchanged_nights_rarely_raise_an_alarm_in_a_year(kind: str) -> None:
    random, series = np.random.default_rng(len(kind)), 200
    alarms = sum(moved(NIGHTS[kind](random, 365).tolist()) is not None for _ in range(series))
    assert alarms <= 1.1 * FALSE_ALARMS_A_YEAR * series + 2 * (0.05 * 0.95 * series) ** 0.5


def test_a_step_and_a_slow_loss_are_found_and_dated() -> None:
    random = np.random.default_rng(3)
    steps, slow = [], 0
    for _ in range(100):
        steps.append(moved((random.binomial(200, 0.8, 60) / 200 - 0.06 * (np.arange(60) >= 30)).tolist()))
        slow += moved((random.binomial(200, 0.8, 60) / 200 - 0.15 * np.arange(60) / 60).tolist()) is not None
    found = [each for each in steps if each is not None]
    assert len(found) >= 95
    assert np.median([each.since for each in found]) == pytest.approx(30, abs=1)
    assert not any(each.upwards for each in found)
    assert slow >= 98


def test_a_series_without_noise_moves_after_some_nights_and_not_after_one() -> None:
    assert moved([0.9] * 400) is None
    assert [k for k in range(301) if moved([k / 300] * 40) is not None] == []  # whose mean may be off by its rounding
    assert moved([0.9] * 20 + [0.895] + [0.9] * 300) is None
    assert moved([0.9] * 20 + [0.895] * 10) == Moved(25, 20, upwards=False)
    assert moved([0.9] * 10) is None
