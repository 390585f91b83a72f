"""The viewer over a lake of two runs, asked over HTTP as a browser asks it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from service.security import SecurityHeaders
from service.settings import Settings
from service.viewer.app import create_viewer
from tests.service.viewer.world import World, build


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("viewer"))


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Serve the viewer; yields where it answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # so that the first request waits until it is answered
        server = uvicorn.Server(uvicorn.Config(SecurityHeaders(create_viewer(settings)), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="package")
def address(world: World) -> Iterator[str]:
    with served(Settings(lake=world.lake)) as where:
        yield where


@pytest.fixture(scope="package")
def locked_address(world: World) -> Iterator[str]:
    """The same, for who has the token `right`."""
    with served(Settings(lake=world.lake, token="right")) as where:
        yield where


@pytest.fixture(scope="package")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{address}/api/v1", timeout=60) as client:
        yield client
