"""A lake with recorded runs of two suites."""

import pytest

import evalake
from evalake.storage.lake import Lake


@pytest.fixture(scope="package")
def lake(recorded_runs: Lake) -> evalake.Lake:
    return evalake.open(recorded_runs.uri)
