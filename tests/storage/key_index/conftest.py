"""A cache of the test's own, and a ledger that is kept from its first rows."""

from pathlib import Path

import pytest

from core.private_folders import CACHE
from storage.key_index import keys, segment

FEW = {"KEEP_FROM": 3, "PORTION": 7}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's cache."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    for name, value in FEW.items():
        monkeypatch.setattr(keys, name, value)
    monkeypatch.setattr(segment, "BLOCK", 5)
    return tmp_path / "cache" / "evalake"
