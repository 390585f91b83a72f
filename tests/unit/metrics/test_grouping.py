"""Agreement of groupings: as scikit-learn has the adjusted Rand index, and pairs as anybody would count them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from evalake.metrics.slices import grouping_agreement

GROUPINGS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=25)


@given(GROUPINGS)
def test_it_is_what_counting_pairs_gives(groups: list[tuple[int, int]]) -> None:
    found, known = [each[0] for each in groups], [each[1] for each in groups]
    agreement = grouping_agreement(found, known)
    put = {pair for pair in combinations(range(len(groups)), 2) if found[pair[0]] == found[pair[1]]}
    belonging = {pair for pair in combinations(range(len(groups)), 2) if known[pair[0]] == known[pair[1]]}
    assert agreement.precision == (len(put & belonging) / len(put) if put else None)
    assert agreement.recall == (len(put & belonging) / len(belonging) if belonging else None)
    if agreement.adjusted_rand is not None:
        assert agreement.adjusted_rand == pytest.approx(adjusted_rand_score(known, found))


def test_the_names_of_groups_do_not_matter() -> None:
    assert grouping_agreement(["x", "x", "y"], [1, 1, 2]).adjusted_rand == 1
    assert grouping_agreement([1, 2, 3], [1, 2, 3]).adjusted_rand is None
