"""What is erased from a table leaves no byte in its files, its log or its checkpoints; other rows stay."""

import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import FORGOTTEN, SAMPLES
from evalake.core.errors import LakeError
from evalake.storage.commit import file_sizes, open_store
from evalake.storage.forget import erase, forgotten_samples
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.test_landing import frame
from tests.unit.contracts.tables.rows import SHA, sound


def bytes_of(lake: Lake, name: str) -> bytes:
    store = open_store(lake, name)
    parts = []
    for path in file_sizes(lake, name):
        with store.open_input_stream(path) as stream:
            parts.append(path.encode() + stream.read())
    return b"".join(parts)


def test_no_byte_of_it_is_left_and_others_stay(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("unforgettable-name"), toy("b")))
    land(lake, TOYS, frame(toy("c")))
    before = lake.open(TOYS).version()
    assert b"unforgettable-name" in bytes_of(lake, "toys")
    left = erase(lake, "toys", "key", ["unforgettable-name"])
    assert b"unforgettable-name" not in bytes_of(lake, "toys")
    assert left == lake.open(TOYS).version() > before
    assert sorted(lake.frame(TOYS).collect()["key"]) == ["b", "c"]


def test_erasing_again_finishes_what_was_begun_and_harms_nothing(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a"), toy("b")))
    for _ in range(2):
        erase(lake, "toys", "key", ["a"])
        assert lake.frame(TOYS).collect()["key"].to_list() == ["b"]


def test_a_table_that_is_not_there_is_named(lake: Lake) -> None:
    with pytest.raises(LakeError, match="has no table toys"):
        erase(lake, "toys", "key", ["a"])


def test_samples_are_forgotten_by_their_hashes(lake: Lake) -> None:
    assert forgotten_samples(lake) == set()
    hashes = {SAMPLES.table: SHA, "calls": SHA[::-1]}
    rows = [sound(FORGOTTEN, table_name=name, row_hash=each) for name, each in hashes.items()]
    land(lake, FORGOTTEN, conform(rows, FORGOTTEN))
    assert forgotten_samples(lake) == {SHA}
