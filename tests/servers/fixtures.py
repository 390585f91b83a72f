"""Fixtures of the local servers; `tests/conftest.py` takes them in as a plugin."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalake.storage.sql.start import landlock_version
from tests.e2e.processes import QUIET, PrefectStack
from tests.servers import evm as place_of_evm
from tests.servers.chromium import chromium as place_of_chromium
from tests.servers.model_server import ModelServer
from tests.servers.postgresql import program, running_postgresql

WITH_TCP = 4  # the version of Landlock's interface


def require(there: bool, what: str) -> None:
    """Skip a test that lacks a program of the system; in CI, where each of them is installed, the test fails."""
    if not there:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"needs {what}")


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A fresh model server on a free port, which answers "ok" until it is given rules."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def idle_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectStack]:
    """One Prefect server for all tests of a process whose runs need no worker, no deployment and no restart."""
    with PrefectStack(tmp_path_factory.mktemp("prefect"), QUIET) as stack:
        yield stack


@pytest.fixture(scope="module")
def prefect_api(idle_server: PrefectStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address for the commands of a file, of which each would else start a server for itself.

    Prefect reads the environment at its import alone, so commands in this process need it in its settings.
    """
    with idle_server.here(tmp_path_factory.mktemp("results")):
        yield idle_server.url


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the browser is."""
    place = place_of_chromium()
    require(place is not None, "chromium-headless-shell, or a Chromium that EVALAKE_CHROMIUM names")
    return str(place)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL database."""
    require(program("initdb") is not None, "postgresql")
    with running_postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def evm() -> Path:
    """The folder of the EVM's programs."""
    require(place_of_evm.is_installed(), f"Node.js 20 or newer, and: npm ci --prefix {place_of_evm.FOLDER}")
    return place_of_evm.FOLDER


@pytest.fixture(scope="session")
def landlock() -> None:
    """The kernel confines a process, also from connections."""
    require(landlock_version() >= WITH_TCP, "a Linux kernel from 6.7 on, with Landlock")
