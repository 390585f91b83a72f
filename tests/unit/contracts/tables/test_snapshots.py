"""A snapshot is known by what it was computed from, and the same is computed once."""

from evalake.contracts.tables.metrics import SNAPSHOTS
from tests.unit.contracts.tables.rows import broken_by


def test_a_snapshot_is_known_by_hashes() -> None:
    assert broken_by(SNAPSHOTS, warnings=["few samples"]) == []
    assert broken_by(SNAPSHOTS, snapshot_id="s") == ["snapshot_id_is_sha256"]
    assert broken_by(SNAPSHOTS, definition_hash="") == ["definition_hash_is_sha256"]


def test_a_snapshot_that_is_there_stays_as_it_is() -> None:
    assert SNAPSHOTS.replaced_when is None
    assert SNAPSHOTS.key == ("snapshot_id",)
