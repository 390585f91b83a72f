"""One Prefect server with a worker for all end-to-end tests that need no more than that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import DATABASE_VARIABLE, PrefectStack
from tests.integration.flows.workplace import Workplace
from tests.servers.model_server import ModelServer
from tests.servers.postgresql import new_database, program

DEPLOYED = ("command-guard-nightly", "maintenance-daily", "metric-snapshot-daily", "review-on-demand")


@pytest.fixture(scope="package")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectStack]:
    """On PostgreSQL where it is installed: several workers at once block each other's transactions in SQLite."""
    folder = tmp_path_factory.mktemp("prefect")
    extra = {}
    if program("initdb"):  # of its own, for tests of other folders may come between, and a second server after them
        extra[DATABASE_VARIABLE] = new_database(request.getfixturevalue("postgresql"), f"end_to_end_{folder.name}")
    with PrefectStack(folder, extra) as running:
        running.deploy(*DEPLOYED)
        running.worker()
        yield running


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer) -> Workplace:
    model_server.rule(reply='{"action": "BLOCK", "reason": "as told", "confidence": 0.9}')
    return Workplace(tmp_path, model_server)
