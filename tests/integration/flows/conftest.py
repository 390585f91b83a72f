"""The session's Prefect server, and for every test a lake, a model server and a configuration that points to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import PrefectStack
from tests.integration.flows.imported import Imported
from tests.integration.flows.workplace import Workplace
from tests.servers.model_server import ModelServer


@pytest.fixture(scope="package", autouse=True)
def prefect_server(idle_server: PrefectStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with idle_server.here(tmp_path_factory.mktemp("results")):
        yield


@pytest.fixture(scope="package")
def imported_once(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """Recorded results of two suites: nothing may be written to their lake."""
    return Imported.into(tmp_path_factory.mktemp("imported"))


@pytest.fixture
def imported(imported_once: Imported, tmp_path: Path) -> Imported:
    """The same in a lake that a test may change."""
    return imported_once.copied(tmp_path)


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer) -> Workplace:
    model_server.rule(reply='{"action": "BLOCK", "reason": "as told", "confidence": 0.9}')
    return Workplace(tmp_path, model_server)
