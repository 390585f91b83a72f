"""A Prefect server for the session, and for every test a lake, a model server and a configuration that points to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.workplace import Workplace
from tests.servers.model_server import ModelServer


@pytest.fixture(scope="package", autouse=True)
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    with (
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings({PREFECT_LOCAL_STORAGE_PATH: tmp_path_factory.mktemp("results")}),
    ):
        yield


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer) -> Workplace:
    model_server.rule(reply='{"action": "BLOCK", "reason": "as told", "confidence": 0.9}')
    return Workplace(tmp_path, model_server)
