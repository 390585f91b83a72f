"""A fresh lake for every test."""

from pathlib import Path

import pytest

from evalake.storage.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))
