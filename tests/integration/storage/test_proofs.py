"""Proofs of earlier checks: kept for the user alone, and believed only as they were written."""

from pathlib import Path

import pytest

from evalake.storage.lake import Lake
from evalake.storage.snapshots import Proofs, StoredFile, read_proofs, write_proofs

PROOFS = Proofs({"samples": {"part.parquet": StoredFile(1, 2, "digest", 3, "rules")}}, frozenset({"basis"}))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_kept_is_read_for_the_same_lake_by_its_user_alone(tmp_path: Path, cache: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    write_proofs(lake, PROOFS)
    assert read_proofs(lake) == PROOFS
    assert read_proofs(Lake(str(tmp_path / "other"))) == Proofs()
    (file,) = (cache / "evalake" / "checks").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 0}', '{"format": 1, "lake": "elsewhere"}'])
def test_what_is_damaged_counts_as_nothing(lake: Lake, cache: Path, content: str) -> None:
    write_proofs(lake, PROOFS)
    (file,) = (cache / "evalake" / "checks").iterdir()
    file.write_text(content)
    assert read_proofs(lake) == Proofs()


def test_where_nothing_can_be_kept_the_check_goes_on(lake: Lake, cache: Path) -> None:
    cache.write_text("no folder")
    write_proofs(lake, PROOFS)
    assert read_proofs(lake) == Proofs()
