"""The dashboard as it is served, in a real browser: one service and one browser for all tests."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.dashboard.browsing import Visit
from tests.e2e.dashboard.judge import Judge
from tests.e2e.dashboard.world import JUDGE, World
from tests.e2e.processes import PrefectStack, wait_until
from tests.servers.chromium import PATIENCE, launched
from tests.servers.model_server import ModelServer

Open = Callable[..., Visit]


@pytest.fixture(scope="package")
def judge() -> Iterator[Judge]:
    with ModelServer() as server:
        yield Judge(server)


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, judge: Judge) -> World:
    return World(tmp_path_factory.mktemp("dashboard"), judge.server.api_base)


@pytest.fixture(scope="package")
def address(idle_server: PrefectStack, world: World) -> Iterator[str]:
    """Where `evalake serve` serves the world; it runs scorings itself, so it shares the server of all tests."""
    command = ("evalake.cli", "serve", "--port", "0", "--no-token", "--judge", JUDGE, "--lake", world.lake.uri)
    process = idle_server.start(*command, "--config", str(world.configuration), "--sessions", str(world.source))

    def served() -> str | None:
        said = process.log.read_text()
        assert process.popen.poll() is None, said
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        return found.group() if found else None

    yield wait_until(served, "the start of the service")
    process.stop()


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Open]:
    """Open an address of the dashboard; at the end nothing may have left the house, popped up, or gone wrong."""
    visits: list[Visit] = []

    def open_page(path: str = "/", width: int = 1280, scheme: Any = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id="UTC", locale="en-GB"
        )
        context.set_default_timeout(PATIENCE)
        visits.append(Visit(context.new_page(), address))
        visits[-1].go(path)
        return visits[-1]

    yield open_page
    for each in visits:
        each.page.context.close()
    assert [each.harm() for each in visits] == [[] for _ in visits]
