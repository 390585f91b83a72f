"""Drift: false alarms as often as the level says, whatever the noise; changes found in whichever direction."""

from collections.abc import Sequence
from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.drift import Given, distances, drift

RNG = np.random.default_rng(7)


def answers(items: int, times: int, shift: float = 0.0, noise: float = 0.0) -> list[list[Given]]:
    """Answers around a half, some items noisier than others."""
    return [
        [{"score": float(np.clip(0.5 + shift + noise * (1 + n % 3) * RNG.normal(), 0, 1))} for _ in range(times)]
        for n in range(items)
    ]


def constant(items: int, times: int, changed: int = 0) -> list[list[Given]]:
    return [[{"verdict": "other" if n < changed else "safe", "score": 0.5}] * times for n in range(items)]


@pytest.mark.parametrize("level", [0.05, 0.2, 0.5])
def test_without_a_change_it_is_wrong_as_often_as_its_level_says(level: float) -> None:
    trials = 300
    found = [drift(answers(6, 5, noise=0.05), answers(6, 1, noise=0.05), resamples=499) for _ in range(trials)]
    wrong = sum(each.p_value <= level for each in found)
    assert abs(wrong - trials * level) < 4 * (trials * level * (1 - level)) ** 0.5


def test_answers_that_never_differ_are_no_drift() -> None:
    found = drift(constant(8, 5), constant(8, 1))
    assert (found.distance, found.noise, found.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("changed", [1, 2, 3])
def test_of_a_judge_without_noise_the_p_value_is_known(changed: int) -> None:
    # The changed answer of each item is the later one by a chance of one in six.
    assert drift(constant(8, 5), constant(8, 1, changed)).p_value == pytest.approx(6.0**-changed, rel=0.1)
    # Five against five: only the two splits without mixture are as far apart, of all ten over five.
    expected = (2 / comb(10, 5)) ** changed
    assert drift(constant(8, 5), constant(8, 5, changed)).p_value == pytest.approx(expected, rel=0.1, abs=6e-5)


def test_shifts_that_cancel_out_are_found() -> None:
    before, after = answers(8, 5, noise=0.02), [*answers(4, 1, 0.3, 0.02), *answers(4, 1, -0.3, 0.02)]
    assert drift(before, after).p_value < 0.001


def test_the_same_answers_give_the_same_p_value() -> None:
    before, after = answers(8, 5, noise=0.1), answers(8, 1, noise=0.1)
    assert drift(before, after) == drift(before, after)


def test_the_p_value_of_an_item_is_its_share_of_orders() -> None:
    before, after = [{"x": x} for x in (0.1, 0.2, 0.3, 0.65)], [{"x": 0.6}]
    mean = [
        np.mean([abs(order[0]["x"] - other["x"]) for other in order[1:]]) for order in permutations([*after, *before])
    ]
    expected = np.mean(np.array(mean) >= mean[0] - 1e-12)
    steady = [{"x": 0.5}] * 4
    assert drift([before, steady], [after, steady[:1]]).p_value == pytest.approx(expected)


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
