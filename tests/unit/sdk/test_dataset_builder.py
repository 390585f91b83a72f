"""A dataset in the making: what is taken in order, what is left out for a reason, and a source that gives nothing."""

from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.sdk import Dataset, Sample
from evalake.sdk.dataset import DatasetBuilder, read_whole


def sample(name: str) -> Sample:
    return Sample("quiz", "mine", name, f"question {name}")


def test_samples_keep_their_order_and_their_names_are_known() -> None:
    builder = DatasetBuilder("mine")
    for name in ("b", "a"):
        builder.add(sample(name))
    assert [each.sample_id for each in builder.result().samples] == ["b", "a"]
    assert (builder.result().name, "a" in builder.ids, "b" in builder.ids, "c" in builder.ids) == (
        "mine",
        True,
        True,
        False,
    )


def test_what_is_refused_has_its_text_and_what_is_left_out_by_design_has_none() -> None:
    builder = DatasetBuilder("mine")
    builder.skip("line 1", "duplicate")
    builder.skip("line 2", "no question", "a\x00" + "x" * 20_000)
    by_design, refused = builder.result().skipped
    assert (by_design.where, by_design.reason, by_design.payload) == ("line 1", "duplicate", None)
    assert refused.payload is not None
    assert refused.payload.startswith("a\\x00xx")
    assert len(refused.payload) < 10_100


def test_a_source_that_gives_no_sample_is_named_with_what_it_held_instead() -> None:
    builder = DatasetBuilder("mine")
    builder.skip("line 1", "no question", "{}")
    builder.skip("line 2", "no question", "{}")
    with pytest.raises(SourceError, match=r"'q.jsonl' holds no question \(2 x no question\)"):
        read_whole("q.jsonl", builder.result, "question")
    with pytest.raises(SourceError, match=r"holds no question \(it is empty\)"):
        read_whole("q.jsonl", DatasetBuilder("mine").result, "question")
    assert read_whole("q.jsonl", builder.result, "question", may_be_empty=True).samples == ()


def test_a_source_that_cannot_be_read_is_named_in_words(tmp_path: Path) -> None:
    def read() -> Dataset:
        (tmp_path / "nowhere").read_text()
        raise AssertionError

    with pytest.raises(SourceError, match="cannot read the dataset source 'nowhere': No such file or directory"):
        read_whole("nowhere", read, "question")
