"""The consensus of Dawid and Skene: their own example, the maximum of the likelihood, judges of different worth."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from evalake.metrics import agreement
from evalake.metrics.agreement import Consensus, dawid_skene
from evalake.metrics.intervals import Array

# Dawid and Skene (1979), table 1: 45 patients, classed 1 to 4 by five anaesthetists, the first of whom saw each thrice.
PATIENTS = """
111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2|222 3 3 2 2|122 2 1 1 1|333 3 4 3 3|222 2 2 2 3
232 2 2 2 3|444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|121 1 1 1 1|111 2 1 1 1|111 1 1 1 1|111 1 1 1 1
222 2 2 2 1|222 1 3 2 2|222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|221 2 2 2 2|111 1 1 1 1|111 1 1 1 1|232 2 2 2 2
111 1 1 1 1|111 1 1 1 1|112 1 1 2 1|111 1 1 1 1|333 3 2 3 3|111 1 1 1 1|222 2 2 2 2|222 3 2 3 2|433 4 3 4 3
221 2 2 3 2|232 3 2 3 3|333 3 4 3 2|111 1 1 1 1|111 1 1 1 1|121 2 1 1 1|232 2 2 2 2|121 1 1 1 1|222 2 2 2 2
"""


def published() -> Array:
    """The words of table 1, counted."""
    patients = [patient.split() for row in PATIENTS.split("\n") if row for patient in row.split("|")]
    counts = np.zeros((45, 5, 4))
    for item, judges in enumerate(patients):
        for judge, words in enumerate(judges):
            for word in words:
                counts[item, judge, int(word) - 1] += 1
    return counts


def simulated(rates: list[float], items: int, seed: int) -> tuple[Array, Array]:
    """What is true of each item, and the words of judges who are right at these rates."""
    random = np.random.default_rng(seed)
    truth = (random.random(items) < 0.5).astype(int)
    right = random.random((items, len(rates))) < np.array(rates)
    return truth, np.eye(2)[np.where(right, truth[:, None], 1 - truth[:, None])]


def log_likelihood(counts: Array, prior: Array, errors: Array) -> float:
    """The likelihood of the paper (2.7), word by word; items of the same words are alike."""
    alike, times = np.unique(counts, axis=0, return_counts=True)
    each = [np.log(sum(prior[c] * np.prod(errors[:, c] ** item) for c in range(len(prior)))) for item in alike]
    return float(times @ each)


def test_the_patients_of_the_paper_have_the_shares_and_error_rates_of_the_paper() -> None:
    found = dawid_skene(published())
    assert found.prior.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert found.errors[0].round(2)[:2].tolist() == [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0]]
    assert found.posterior.sum(axis=1) == pytest.approx(1)
    assert found.errors.sum(axis=2) == pytest.approx(1)


@pytest.mark.slow
def test_the_estimate_is_a_maximum_of_the_likelihood() -> None:
    """What a general optimiser finds from the same words, of two classes and three judges."""
    _, counts = simulated([0.9, 0.75, 0.65], 400, 1)

    def parameters(x: Array) -> tuple[Array, Array]:
        share, *right = 1 / (1 + np.exp(-x))
        first, second = np.array(right).reshape(2, 3)
        errors = np.stack([np.stack([first, 1 - first], axis=1), np.stack([1 - second, second], axis=1)], axis=1)
        return np.array([share, 1 - share]), errors

    best = minimize(lambda x: -log_likelihood(counts, *parameters(x)), np.array([0.0] + [1.0] * 6), tol=1e-10)
    prior, errors = parameters(best.x)
    found = dawid_skene(counts)
    assert found.prior == pytest.approx(prior, abs=1e-3)
    assert found.errors == pytest.approx(errors, abs=1e-3)
    assert log_likelihood(counts, found.prior, found.errors) >= -best.fun - 1e-6


def test_the_probability_of_a_class_is_bayes_rule_by_hand() -> None:
    _, counts = simulated([0.95, 0.7, 0.7], 300, 2)
    found = dawid_skene(counts)
    for words in product(range(2), repeat=3):
        (items,) = np.nonzero((counts.argmax(axis=2) == words).all(axis=1))
        each = [
            found.prior[c] * np.prod([found.errors[judge, c, word] for judge, word in enumerate(words)]) for c in (0, 1)
        ]
        assert found.posterior[items] == pytest.approx(np.tile(np.array(each) / sum(each), (len(items), 1)), abs=1e-6)


def test_two_good_judges_outweigh_three_poor_ones_where_a_majority_would_not() -> None:
    """Judges who are right at .95, .9, .6, .6 and .6, on 200 items."""
    majority, consensus = [], []
    for seed in range(10):
        truth, counts = simulated([0.95, 0.9, 0.6, 0.6, 0.6], 200, seed)
        majority.append(float((counts.sum(axis=1).argmax(axis=1) == truth).mean()))
        consensus.append(right(dawid_skene(counts), truth))
    assert np.mean(consensus) > np.mean(majority) + 0.03
    assert sum(a > b for a, b in zip(consensus, majority, strict=True)) >= 9


def right(found: Consensus, truth: Array) -> float:
    """The share of items whose likeliest class is the true one."""
    return float((found.posterior.argmax(axis=1) == truth).mean())


def test_judges_of_one_worth_come_to_their_majority() -> None:
    _, counts = simulated([0.85] * 5, 400, 3)
    majority = counts.sum(axis=1).argmax(axis=1)
    assert (dawid_skene(counts).posterior.argmax(axis=1) == majority).mean() > 0.99


def test_a_judge_that_was_not_asked_says_nothing_of_an_item() -> None:
    _, counts = simulated([0.9, 0.8, 0.8], 200, 4)
    fewer = counts.copy()
    fewer[0, 1:] = 0
    assert np.isfinite(dawid_skene(fewer).posterior).all()
    alone = np.array([[[1.0, 0.0]]])
    assert dawid_skene(alone).posterior.tolist() == [[1.0, 0.0]]


def test_it_says_whether_it_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    _, counts = simulated([0.9, 0.8, 0.7], 200, 3)
    assert dawid_skene(counts).converged
    monkeypatch.setattr(agreement, "ROUNDS", 2)
    assert not dawid_skene(counts).converged
