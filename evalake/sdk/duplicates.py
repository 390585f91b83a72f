"""Samples that stand twice: equal texts, and near-duplicates by shingles of five letters (MinHash, Jaccard)."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from zlib import crc32

import numpy as np

SHINGLE = 5  # letters
LEAST = 5  # shingles of a text: shorter ones are equal or they are not
NEAR = 0.8  # share of common shingles from which two texts are near-duplicates
LONGEST = 4000  # letters of a text that are looked at
MOST = 50_000  # texts among which near-duplicates are looked for
_BANDS, _ROWS = 20, 5  # 0.8 alike: found with probability 0.9996
_MOST_IN_BUCKET = 50
_PRIME = (1 << 31) - 1


def plain(text: str) -> str:
    """Fold case and white space."""
    return " ".join(text.casefold().split())


def equal(texts: Sequence[str]) -> list[list[int]]:
    """Group the places of texts that are equal but for case and white space; only groups of several."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        groups[plain(text)].append(place)
    return [group for group in groups.values() if len(group) > 1]


def near(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of texts that are nearly the same, with the share of shingles that they have in common."""
    shingles = [_shingles(text) for text in texts]
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    rng = np.random.default_rng(1)
    factors = rng.integers(1, _PRIME, size=(_BANDS * _ROWS, 1), dtype=np.int64)
    offsets = rng.integers(0, _PRIME, size=(_BANDS * _ROWS, 1), dtype=np.int64)
    for place, own in enumerate(shingles):
        if len(own) < LEAST:
            continue
        hashed = np.fromiter(own, np.int64, len(own)) % _PRIME
        least = ((factors * hashed + offsets) % _PRIME).min(axis=1).astype(np.int32)
        for band in range(_BANDS):
            buckets[band, least[band * _ROWS : (band + 1) * _ROWS].tobytes()].append(place)
    seen = set()
    for bucket in buckets.values():
        for one, other in combinations(bucket[:_MOST_IN_BUCKET], 2):
            if (one, other) not in seen:
                seen.add((one, other))
                common = len(shingles[one] & shingles[other])
                share = common / (len(shingles[one]) + len(shingles[other]) - common)
                if share >= NEAR and plain(texts[one]) != plain(texts[other]):
                    yield one, other, share


def _shingles(text: str) -> frozenset[int]:
    letters = re.sub(r"[^\w\s]", "", plain(text[:LONGEST])).encode()
    return frozenset(crc32(letters[at : at + SHINGLE]) for at in range(max(1, len(letters) - SHINGLE + 1)))
