"""The consensus of several judges by Dawid and Skene (1979): whoever errs less counts for more.

What an item truly is, is not known. Each judge has a matrix of error rates, the chance of each of its words given what
is true; these, the shares of the classes and the probability of each item's class are estimated together, by
expectation maximisation of the likelihood, from the judges' words alone. It begins at the shares of the words that each
item got, as the paper does, so that a class keeps the meaning that most judges give it.
"""

from dataclasses import dataclass

import numpy as np

from metrics.intervals import Array

ROUNDS = 1_000
CLOSE = 1e-9
"""Rounds end where no probability moves by more."""

_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the words show: the probabilities of each item's classes, the classes' shares, each judge's error rates."""

    posterior: Array
    """[items, classes]: the probability of each class."""
    prior: Array
    """[classes]: their shares."""
    errors: Array
    """[judges, classes, words]: how often a judge says each word of an item of a class; 0 where it never met one."""


def dawid_skene(counts: Array) -> Consensus:
    """Estimate the consensus.

    Args:
        counts: [items, judges, classes]: how often a judge called an item that, 0 where it was not asked. Every item
            has one word at least.
    """
    words = counts.sum(axis=1)
    posterior = words / words.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        before, prior, errors = posterior, posterior.mean(axis=0), _errors(counts, posterior)
        posterior = _posterior(counts, prior, errors)
        if np.abs(posterior - before).max(initial=0.0) < CLOSE:
            break
    return Consensus(posterior, posterior.mean(axis=0), _errors(counts, posterior))


def _errors(counts: Array, posterior: Array) -> Array:
    words = np.einsum("ic,ijw->jcw", posterior, counts)
    classified = words.sum(axis=2, keepdims=True)
    return np.asarray(np.divide(words, classified, out=np.zeros_like(words), where=classified > 0))


def _posterior(counts: Array, prior: Array, errors: Array) -> Array:
    """Compute each item's class probabilities, from log-likelihoods: products of many words come too close to 0."""
    likelihood = np.einsum("ijw,jcw->ic", counts, np.log(np.fmax(errors, _LEAST))) + np.log(np.fmax(prior, _LEAST))
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return np.asarray(relative / relative.sum(axis=1, keepdims=True))
