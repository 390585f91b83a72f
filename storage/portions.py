"""Portions: files in groups of a bounded size, for what cannot hold all of them at once."""

from collections.abc import Iterator, Mapping


def portions(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Yield groups of files, in their order, that are no larger than `most` together; a file is never cut."""
    portion: list[str] = []
    taken = 0
    for file, size in sizes.items():
        if portion and taken + size > most:
            yield portion
            portion, taken = [], 0
        portion.append(file)
        taken += size
    if portion:
        yield portion
