"""A lake with recorded runs, which tests of steps read."""

import pytest

from evalake.contracts.tables import RUNS
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.recorded_lake import recorded_lake


@pytest.fixture(scope="package")
def recorded_runs(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Made once: nothing may be written to it."""
    return recorded_lake(tmp_path_factory.mktemp("recorded_runs"))


def newest(lake: Lake, suite: str) -> RunContext:
    """The suite's newest run."""
    runs = lake.frame(RUNS).filter(suite=suite).sort("started_at").collect()
    return RunContext(str(runs["run_id"][-1]), suite, lake, Configuration())


@pytest.fixture
def guard(recorded_runs: Lake) -> RunContext:
    """The run of two models on forty commands."""
    return newest(recorded_runs, "command_guard")


@pytest.fixture
def audits(recorded_runs: Lake) -> RunContext:
    """The run of a model on twelve contracts, by two judges."""
    return newest(recorded_runs, "solidity_audit")
