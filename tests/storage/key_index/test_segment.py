"""Segments: what is sorted, merged and mapped finds the rows that a plain look through all of them finds."""

from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.key_index.segment import MARK, Array, Segment, marks_of, repeated, write

MARKS = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1, *(hash_ * 0x9E3779B97F4A7C15 % 2**64 for hash_ in range(300))])
FILES = st.lists(st.tuples(st.lists(MARKS, max_size=60), st.booleans()), min_size=1, max_size=5)


def of(files: list[tuple[list[int], bool]], prefix: str) -> Segment:
    """A segment of files with these marks, of which some are of no interest."""
    names = [f"{prefix}{number}" for number in range(len(files))]
    marks = np.array([mark for marks, _ in files for mark in marks], np.uint64)
    segment = Segment.of(names, [len(marks) for marks, _ in files], marks)
    return segment.only({name for name, (_, kept) in zip(names, files, strict=True) if kept})


def found(segment: Segment, wanted: Array) -> list[tuple[int, str, int]]:
    rows = zip(*segment.find(wanted), strict=True)
    return sorted((int(wanted[which]), str(segment.files[file]), int(row)) for which, file, row in rows)


def expected(files: list[tuple[list[int], bool]], prefix: str, wanted: set[int]) -> list[tuple[int, str, int]]:
    return sorted(
        (mark, f"{prefix}{number}", row)
        for number, (marks, kept) in enumerate(files)
        for row, mark in enumerate(marks)
        if kept and mark in wanted
    )


@settings(deadline=None)
@given(FILES, FILES, st.sets(MARKS))
def test_a_segment_in_memory_and_one_merged_into_a_file_find_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    one: list[tuple[list[int], bool]],
    other: list[tuple[list[int], bool]],
    wanted: set[int],
) -> None:
    asked = np.array(sorted(wanted), np.uint64)
    assert found(of(one, "a"), asked) == expected(one, "a", wanted)
    path = tmp_path_factory.mktemp("segment") / "keys"
    with path.open("wb") as file:
        names, lengths, twice = write(file, [of(one, "a"), of(other, "b")])
    merged = Segment.load(path, names, lengths)
    assert found(merged, asked) == sorted(expected(one, "a", wanted) + expected(other, "b", wanted))
    counts = Counter(mark for marks, kept in [*one, *other] if kept for mark in marks)
    assert twice.tolist() == sorted(mark for mark, count in counts.items() if count > 1)
    assert repeated(merged.marks).tolist() == twice.tolist()
    joined = Segment.joined([of(one, "a"), of(other, "b")])
    assert (joined.files, joined.lengths) == (merged.files, merged.lengths)
    assert found(joined, asked) == found(merged, asked)


@pytest.mark.slow
def test_a_key_takes_twelve_bytes_and_its_table_of_starts_few_more() -> None:
    marks = np.random.default_rng(0).integers(0, 2**64, 100_000, np.uint64)
    segment = Segment.of(["a"], [marks.size], marks)
    assert segment.entries.nbytes == 12 * marks.size
    assert segment.starts.nbytes < 0.2 * marks.size
    written = BytesIO()
    write(written, [segment])
    assert len(written.getvalue()) == segment.entries.nbytes + segment.starts.nbytes


@pytest.mark.parametrize("rest", [b"", b"\0" * 8])
def test_a_file_of_another_length_is_refused(tmp_path: Path, rest: bytes) -> None:
    written = BytesIO()
    names, lengths, _ = write(written, [of([([1, 2, 3], True)], "a")])
    (tmp_path / "keys").write_bytes(written.getvalue()[:-8] + rest)
    with pytest.raises(ValueError, match="keys"):
        Segment.load(tmp_path / "keys", names, lengths)


def test_marks_come_from_hash_and_replicate_alone() -> None:
    keys = pl.DataFrame({"prompt_hash": ["ab" * 32, "ab" * 32, "no hash", ""], "replicate": [0, 1, 2, 2]})
    first, second, odd, empty = (int(mark) for mark in marks_of(keys.select(MARK, "replicate")))
    assert first == 0xABABABABABABABAB
    assert second == (first + 0x9E3779B97F4A7C15) % 2**64
    assert odd == empty
