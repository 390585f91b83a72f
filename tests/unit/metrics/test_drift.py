"""Drift: false alarms as often as the level says, whatever the noise; changes found in whichever direction."""

from collections.abc import Sequence
from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.metrics.drift import Given, distances, drift

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
@pytest.mark.parametrize("level", [0.05, 0.2, 0.5])
def test_without_a_change_it_is_wrong_no_more_often_than_its_level_says(level: float) -> None:
    trials = 300
    found = [drift(answers(6, 5, noise=0.05), answers(6, 1, noise=0.05), resamples=499) for _ in range(trials)]
    wrong = sum(each.p_value <= level for each in found)
    spread = (trials * level * (1 - level)) ** 0.5
    assert trials * level / 2 - 4 * spread < wrong < trials * level + 4 * spread  # two tests share the level


def test_answers_that_never_differ_are_no_drift() -> None:
    found = drift(constant(8, 5), constant(8, 1))
    assert (found.distance, found.noise, found.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [1, 2, 3])
def test_of_a_judge_without_noise_the_p_value_is_known(changed: int) -> None:
    # The changed answer of each item is the later one by a chance of one in six; and there are two tests.
    assert drift(constant(8, 5), constant(8, 1, changed)).p_value == pytest.approx(2 * 6.0**-changed, rel=0.1)
    # Five against five: only the two splits without mixture are as far apart, of all ten over five.
    expected = 2 * (2 / comb(10, 5)) ** changed
    assert drift(constant(8, 5), constant(8, 5, changed)).p_value == pytest.approx(expected, rel=0.1, abs=1.2e-4)


def test_shifts_that_cancel_out_are_found() -> None:
    before, after = answers(8, 5, noise=0.02), [*answers(4, 1, 0.3, 0.02), *answers(4, 1, -0.3, 0.02)]
    assert drift(before, after).p_value < 0.001


def test_the_same_answers_give_the_same_p_value() -> None:
    before, after = answers(8, 5, noise=0.1), answers(8, 1, noise=0.1)
    assert drift(before, after) == drift(before, after)


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
    seen = orders[0]
    shares = [np.mean([order[n] >= seen[n] - 1e-12 for order in orders]) for n in (0, 1)]
    assert drift(*given_).p_value == pytest.approx(2 * min(shares))  # type: ignore[arg-type]


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
