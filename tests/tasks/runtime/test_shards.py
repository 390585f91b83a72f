"""Shards are parts of a whole: every conversation is of exactly one of them, and equal requests are of the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.hashing import content_hash
from suites.base import Item
from tasks.runtime.shards import WHOLE, Shard
from tasks.steps.converse import Conversation


def conversation(first_hash: str) -> Conversation:
    item: Item = None  # type: ignore[assignment] # the first request alone decides
    return Conversation(item, first_hash)


@given(of=st.integers(1, 64), request=st.text())
def test_a_request_is_of_exactly_one_shard(of: int, request: str) -> None:
    asked = conversation(content_hash(request))
    assert sum(Shard(number, of).has(asked) for number in range(1, of + 1)) == 1
    assert WHOLE.has(asked)


def test_shards_are_of_about_the_same_size() -> None:
    asked = [conversation(content_hash(number)) for number in range(4000)]
    sizes = [sum(map(Shard(number, 4).has, asked)) for number in (1, 2, 3, 4)]
    assert 900 < min(sizes) <= max(sizes) < 1100


def test_a_shard_is_written_as_it_is_read() -> None:
    assert Shard.parse("2/4") == Shard(2, 4)
    assert str(Shard(2, 4)) == "2/4"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "١/٢", "1/4\n", "1" * 9999])
def test_what_is_no_shard_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="shard") as refusal:
        Shard.parse(text)
    assert len(str(refusal.value)) < 120
