"""Files are taken in their order, in groups of a bounded size; one that is larger than that comes alone."""

import pytest

from evalake.storage.commit import chunks_by_size


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([], []),
        ([10], [[0]]),
        ([4, 6, 1], [[0, 1], [2]]),
        ([11, 1], [[0], [1]]),
        ([1, 11, 1, 9], [[0], [1], [2, 3]]),
        ([0, 0, 10, 0], [[0, 1, 2, 3]]),
    ],
)
def test_groups_keep_their_order_and_stay_within_the_bound(sizes: list[int], taken: list[list[int]]) -> None:
    files = {f"file {number}": size for number, size in enumerate(sizes)}
    assert list(chunks_by_size(files, 10)) == [[f"file {number}" for number in group] for group in taken]
