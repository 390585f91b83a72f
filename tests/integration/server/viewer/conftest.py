"""The viewer over a lake of two runs, asked over HTTP as a browser asks it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser

from evalake.server.auth import SecurityHeaders
from evalake.server.settings import Settings
from evalake.server.viewer.routes import create_viewer
from tests.e2e.dashboard.browsing import Visit
from tests.integration.server.viewer.world import World, build
from tests.servers.chromium import PATIENCE, launched

Open = Callable[..., Visit]


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
        thread.join()


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
    with httpx.Client(base_url=f"{address}/api/v1", timeout=600) as client:
        yield client


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture
def look(browser: Browser) -> Iterator[Open]:
    """Open a page at its whole address; at the end nothing may have left the house, popped up, or gone wrong."""
    visits: list[Visit] = []

    def open_page(address: str, width: int = 1280, scheme: Any = "light") -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        visits.append(Visit(context.new_page(), address))
        visits[-1].go("")
        return visits[-1]

    yield open_page
    for each in visits:
        each.page.context.close()
    assert [each.harm() for each in visits] == [[] for _ in visits]
