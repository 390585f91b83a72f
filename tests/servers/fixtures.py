"""Fixtures of the local servers; `tests/conftest.py` takes them in as a plugin."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import PrefectStack
from tests.servers import evm as place_of_evm
from tests.servers.chromium import chromium as place_of_chromium
from tests.servers.model_server import ModelServer
from tests.servers.postgresql import running_postgresql


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A fresh model server on a free port, which answers "ok" until it is given rules."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prefect server for the commands of a file, of which each would else start one for itself."""
    with PrefectStack(tmp_path_factory.mktemp("prefect")) as stack:
        yield stack.url


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the browser is. A test that uses it, also by another fixture, is left out where there is none."""
    place = place_of_chromium()
    assert place is not None, "install chromium-headless-shell, or name a Chromium with EVALAKE_CHROMIUM"
    return place


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL database. A test that uses it is left out where the server is not installed."""
    with running_postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def evm() -> Path:
    """The folder of the EVM's programs. A test that uses it is left out where Node.js or a package is missing."""
    assert place_of_evm.is_installed(), f"install Node.js 20 or newer, and then: npm ci --prefix {place_of_evm.FOLDER}"
    return place_of_evm.FOLDER
