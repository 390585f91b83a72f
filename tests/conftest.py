"""What all tests share."""

import os
from pathlib import Path

import pytest

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that EVALAKE_REAL_DATA names."""
    folder = os.environ.get("EVALAKE_REAL_DATA")
    if not folder:
        pytest.fail("set EVALAKE_REAL_DATA to the folder of real data, or leave out the tests marked real_data")
    return Path(folder)
