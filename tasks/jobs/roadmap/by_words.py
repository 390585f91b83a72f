"""Group what was named by the words in common, without any model: the bar for grouping by meaning."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

FARTHEST = 0.88  # of two groups that become one: 1 less the mean cosine of their members
MOST_WORDS = 60  # of a name and its reason

_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_ENDINGS = re.compile(r"(?:ations?|ings?|ions?|ers?|ors?|ies|ed|es|s|e|y)$")
_LEAST_STEM = 3
_SAYING_NOTHING = (
    "the and for with that this would have has had was were are not from which what when where who how why could "
    "its their them they than then there here been being into over each any all one two both also only more most "
    "tool tools show shows shown showed showing available agent agents investigation analysis conclusion session alert "
    "evidence direct instead guess guessed guessing assumed assumption told tell tells telling seen see know known "
    "because whether before after during between without while still just very able make made gave give given "
    "get list look query search inspect inspector viewer view reader read check checker analyzer lookup find"
)
_SAYS_NOTHING = frozenset(_SAYING_NOTHING.split())


def group_by_words(named: Mapping[str, str]) -> list[list[str]]:
    """Group names by the words of names and reasons; the same names and reasons always give the same groups.

    Args:
        named: Reasons by name.

    Returns:
        The groups, and the names in each, in the order of the alphabet.
    """
    names = sorted(named)
    if len(names) < 2:
        return [[name] for name in names]
    vectors = _vectors([_stems(f"{name} {named[name]}") for name in names])
    distances = np.clip(1 - vectors @ vectors.T, 0.0, None)[np.triu_indices(len(names), 1)]
    groups: dict[int, list[str]] = defaultdict(list)
    for name, group in zip(names, fcluster(linkage(distances, "average"), FARTHEST, "distance"), strict=True):
        groups[int(group)].append(name)
    return sorted(groups.values())


def _stems(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())[:MOST_WORDS]
    return {_stem(word) for word in words if word not in _SAYS_NOTHING}


def _stem(word: str) -> str:
    cut = _ENDINGS.sub("", word)
    return cut if len(cut) >= _LEAST_STEM else word


def _vectors(stems: Sequence[set[str]]) -> NDArray[Any]:
    """Unit vectors of inverse document frequencies; of no words at all, the null vector."""
    frequency = Counter(stem for each in stems for stem in each)
    column = {stem: number for number, stem in enumerate(sorted(frequency))}
    matrix = np.zeros((len(stems), max(len(column), 1)))
    for row, each in enumerate(stems):
        for stem in each:
            matrix[row, column[stem]] = np.log(1 + len(stems) / frequency[stem])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)
