"""Group what was named by the words in common, without any model: the bar for grouping by meaning.

Names are taken in portions, in the order of the alphabet: each joins the nearest group of the portions before it that
is near enough, and what is near to none is grouped among itself. So memory grows with the names, not with their pairs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array, diags_array

FARTHEST = 0.88  # of two groups that become one: 1 less the mean cosine of their members
MOST_WORDS = 60  # of a name and its reason
PORTION = 2_000  # names that are compared with one another

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
    if not names:
        return []
    vectors = _vectors([_stems(f"{name} {named[name]}") for name in names])
    of = np.empty(0, int)
    for start in range(0, len(names), PORTION):
        portion = vectors[start : start + PORTION]
        joined = _nearest(portion, vectors[:start], of)
        alone = np.flatnonzero(joined < 0)
        joined[alone] = _among_themselves(portion[alone]) + (of.max() + 1 if of.size else 0)
        of = np.concatenate((of, joined))
    groups: dict[int, list[str]] = defaultdict(list)
    for name, group in zip(names, of, strict=True):
        groups[int(group)].append(name)
    return sorted(groups.values())


def _nearest(vectors: Any, known: Any, of: NDArray[Any]) -> NDArray[Any]:
    """Find the group of each vector: the nearest of those of the known vectors; -1 where none is near enough."""
    if not of.size:
        return np.full(vectors.shape[0], -1)
    members = csr_array((np.ones(of.size), (of, np.arange(of.size))))
    means = diags_array(1 / members.sum(axis=1)) @ (members @ known)
    cosines = csr_array(vectors @ means.T)
    return np.where(cosines.max(axis=1).toarray().ravel() >= 1 - FARTHEST, cosines.argmax(axis=1), -1)


def _among_themselves(vectors: Any) -> NDArray[Any]:
    """Find the group of each vector, from 0, by average linkage."""
    if vectors.shape[0] < 2:
        return np.zeros(vectors.shape[0], int)
    cosines = (vectors @ vectors.T).toarray()
    distances = np.clip(1 - cosines[np.triu_indices(len(cosines), 1)], 0.0, None)
    return np.asarray(fcluster(linkage(distances, "average"), FARTHEST, "distance")) - 1


def _stems(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())[:MOST_WORDS]
    return {_stem(word) for word in words if word not in _SAYS_NOTHING}


def _stem(word: str) -> str:
    cut = _ENDINGS.sub("", word)
    return cut if len(cut) >= _LEAST_STEM else word


def _vectors(stems: Sequence[set[str]]) -> Any:
    """Build unit vectors of inverse document frequencies as rows, sparse; of no words at all, the null vector."""
    frequency = Counter(stem for each in stems for stem in each)
    column = {stem: number for number, stem in enumerate(sorted(frequency))}
    cells = [(row, column[stem]) for row, each in enumerate(stems) for stem in sorted(each)]
    rows, columns = np.array(cells, int).reshape(-1, 2).T
    weights = np.array([np.log(1 + len(stems) / frequency[stem]) for each in stems for stem in sorted(each)])
    lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(stems)))
    shape = (len(stems), max(len(column), 1))
    return csr_array((weights / lengths[rows], (rows, columns)), shape=shape)
