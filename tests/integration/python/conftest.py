"""A lake with recorded runs of two suites."""

import pytest

import evalake
from tests.integration.storage.recorded_lake import recorded_lake


@pytest.fixture(scope="package")
def lake(tmp_path_factory: pytest.TempPathFactory) -> evalake.Lake:
    return evalake.open(recorded_lake(tmp_path_factory.mktemp("python")).uri)
