"""How well a grouping agrees with a known one: over pairs, each either together or apart."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True, slots=True)
class GroupingAgreement:
    """Of the pairs that are together in one grouping, how many are in the other."""

    precision: float | None  # of the pairs put together, those that belong together; None: none was put together
    recall: float | None  # of the pairs that belong together, those put together; None: none belongs together
    adjusted_rand: float | None  # 1: the same grouping, 0: as good as chance; None: chance could do no other


def grouping_agreement(assigned: Sequence[Hashable], known: Sequence[Hashable]) -> GroupingAgreement:
    """Compare the group that each of some things was put into with the one that it belongs to.

    The adjusted Rand index is that of Hubert and Arabie (1985).
    """
    both = _pairs(list(zip(assigned, known, strict=True)))
    put, belonging, pairs = _pairs(assigned), _pairs(known), comb(len(known), 2)
    expected = put * belonging / pairs if pairs else 0.0
    most = (put + belonging) / 2
    return GroupingAgreement(
        precision=both / put if put else None,
        recall=both / belonging if belonging else None,
        adjusted_rand=(both - expected) / (most - expected) if most != expected else None,
    )


def _pairs(groups: Sequence[Hashable]) -> int:
    """Count the pairs that are together in a group."""
    return sum(comb(size, 2) for size in Counter(groups).values())
