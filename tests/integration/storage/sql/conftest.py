"""A lake with one toy in it, for queries."""

import pytest

from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.test_landing import frame


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with one toy in it."""
    lake = Lake(str(tmp_path_factory.mktemp("toys") / "lake"))
    land(lake, TOYS, frame(toy("a")))
    return lake
