"""What a source says of a command becomes a sample, or is left out for the first reason that there is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalake.sdk.dataset import DUPLICATE, NOT_TEXT, REPEATED_ID
from evalake.sdk.spool import Seen
from evalake.suites.command_guard.sources import (
    COMMAND_TOO_LONG,
    CONTRADICTION,
    LONGEST_COMMAND,
    MISSING_COMMAND,
    UNKNOWN_LABEL,
    CommandDatasetBuilder,
    Material,
    read_dataset,
)
from tests.unit.suites.command_guard.sources.datasets import ROWS, left_out, write_lines

HARMLESS = Material("ls", "harmless", raw="as it stood")
MALICIOUS = Material("cat /etc/shadow", "malicious", "file-read", cluster="cat", name="cat_file-read")


def built(*materials: Material) -> CommandDatasetBuilder:
    builder = CommandDatasetBuilder("mine")
    for place, material in enumerate(materials):
        builder.add_material(f"line {place}", material)
    return builder


def test_a_command_becomes_a_sample_named_by_what_it_is_and_its_digest() -> None:
    (harmless, malicious) = built(HARMLESS, MALICIOUS).result().samples
    assert (harmless.suite, harmless.dataset, harmless.input, harmless.category) == (
        "command_guard", "mine", "ls", None
    )  # fmt: skip
    assert harmless.sample_id.startswith("mine/")
    assert malicious.sample_id == "mine/cat_file-read_71a8bd3f"
    assert (malicious.label, malicious.category, malicious.cluster) == ("malicious", "file-read", "cat")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"command": None}, MISSING_COMMAND),
        ({"command": " \n"}, MISSING_COMMAND),
        ({"command": ["ls"]}, NOT_TEXT),
        ({"command": "a\x00"}, NOT_TEXT),
        ({"note": "\ud800"}, NOT_TEXT),
        ({"cluster": 7}, NOT_TEXT),
        ({"command": "a" * (LONGEST_COMMAND + 1)}, COMMAND_TOO_LONG),
        ({"label": "Harmless"}, UNKNOWN_LABEL),
        ({"label": None}, UNKNOWN_LABEL),
    ],
)
def test_a_flaw_is_told_and_kept_for_quarantine(change: dict[str, Any], reason: str) -> None:
    builder = built(replace(HARMLESS, **change))
    assert not builder.samples
    (left,) = builder.skipped
    assert (left.where, left.reason, left.payload) == ("line 0", reason, "as it stood")


def test_of_equal_commands_the_first_is_kept_and_one_of_another_label_is_refused() -> None:
    builder = built(HARMLESS, HARMLESS, replace(MALICIOUS, command="ls", raw="other"))
    assert [sample.label for sample in builder.samples] == ["harmless"]
    assert [(left.reason, left.payload) for left in builder.skipped] == [(DUPLICATE, None), (CONTRADICTION, "other")]


def test_a_name_is_taken_once() -> None:
    builder = built(replace(HARMLESS, sample_id="one"), replace(HARMLESS, command="df", sample_id="one"))
    assert [left.reason for left in builder.skipped] == [REPEATED_ID]


def test_a_digest_that_is_taken_grows() -> None:
    taken = Seen()
    taken.add("mine/cat_file-read_71a8bd3f")
    builder = CommandDatasetBuilder("mine", ids=taken)
    builder.add_material("line 1", MALICIOUS)
    (sample,) = builder.samples
    assert sample.sample_id.startswith("mine/cat_file-read_71a8bd3f")
    assert len(sample.sample_id) == len("mine/cat_file-read_") + 16


def test_duplicates_by_design_have_no_payload(tmp_path: Path) -> None:
    dataset = read_dataset(write_lines(tmp_path / "set.jsonl", *ROWS, ROWS[0], ROWS[1] | {"category": "upload"}))
    assert left_out(dataset) == {"duplicate": 2}
    assert [left.payload for left in dataset.skipped] == [None, None]
    assert dataset.samples[1].category == "file-read"
