"""Samples are told apart by all that defines them, and a dataset by its samples in order."""

from dataclasses import fields, replace

import pytest

from evalake.sdk import Dataset, Sample, Skipped

SAMPLE = Sample("quiz", "d", "s1", "?")
DEFINING = [field.name for field in fields(Sample) if field.name != "note"]


@pytest.mark.parametrize("name", DEFINING)
def test_whatever_is_changed_of_it_makes_it_another_sample(name: str) -> None:
    assert replace(SAMPLE, **{name: "changed"}).sample_hash != SAMPLE.sample_hash


def test_a_note_is_no_part_of_it() -> None:
    assert replace(SAMPLE, note="why").sample_hash == SAMPLE.sample_hash


def test_the_hash_is_what_lakes_have() -> None:
    assert SAMPLE.sample_hash == "914d5c259b9c17378436b6e2e0d179b26634145a36fe1a89fd623438615f9d7e"


def test_nothing_is_not_the_empty_text() -> None:
    assert replace(SAMPLE, label="").sample_hash != SAMPLE.sample_hash


def test_a_dataset_has_another_version_where_its_samples_are_others_or_in_another_order() -> None:
    other = replace(SAMPLE, sample_id="s2")
    versions = [Dataset("d", samples).version for samples in ((SAMPLE, other), (other, SAMPLE), (SAMPLE,), ())]
    assert len(set(versions)) == len(versions)
    assert Dataset("another", (SAMPLE,), (Skipped("x", "y"),)).version == versions[2], "its name and gaps are no part"
