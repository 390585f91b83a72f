"""The identity of a snapshot: everything that decides its values is in it, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from evalake.storage.snapshots import Snapshot

SNAPSHOT = Snapshot(
    run_id="r1",
    suite="toys",
    pinned_versions={"calls": 3, "toys": None},
    definition_hash="d" * 64,
    scorer_version="1",
    seed=7,
    options={"target": 0.85},
    code_version="1.0",
)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "r2"},
        {"suite": "others"},
        {"pinned_versions": {"calls": 4, "toys": None}},
        {"pinned_versions": {"calls": 3, "toys": 0}},
        {"definition_hash": "e" * 64},
        {"scorer_version": "2"},
        {"seed": 8},
        {"options": {"target": 0.9}},
    ],
    ids=lambda change: "-".join(change),
)
def test_whatever_decides_the_values_changes_the_id(change: dict[str, Any]) -> None:
    assert replace(SNAPSHOT, **change).id != SNAPSHOT.id


def test_warnings_the_code_version_and_the_order_of_names_do_not() -> None:
    other = replace(SNAPSHOT, code_version="2.0", warnings=("look",), pinned_versions={"toys": None, "calls": 3})
    assert other.id == SNAPSHOT.id
