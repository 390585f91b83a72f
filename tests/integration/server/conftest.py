"""One Prefect server and a service, or two on one lake, which all tests share; nothing runs what they submit."""

from collections.abc import Iterator

import pytest

from tests.e2e.processes import QUIET, PrefectStack
from tests.integration.server.services import Place, Service, deploy, start
from tests.servers.model_server import ModelServer

TOKEN = "secret"
RACES = tuple(f"race-{number}" for number in range(2))
FORCED = tuple(f"forced-{number}" for number in range(2))
TABLE = tuple(f"table-{number}" for number in range(20))
TOLD = tuple(f"told-{number}" for number in range(10))
GUARD = 'trusted_proxies = ["127.0.0.1"]\nrequest_seconds = 2\nconnections = 100\nfollow_seconds = 1\n'


@pytest.fixture(scope="package")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectStack]:
    """A server with the scoring flow deployed, and no worker: what is submitted waits."""
    with PrefectStack(tmp_path_factory.mktemp("idle"), QUIET) as stack:
        deploy(stack)
        yield stack


@pytest.fixture(scope="package")
def judge_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="package")
def shared_place(tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer) -> Place:
    place = Place(tmp_path_factory.mktemp("place"), judge_server)
    place.write(*RACES, *FORCED, *TABLE, *TOLD, agent="disk-agent", alert_type="DiskFull")
    place.write("still-going", status="in_progress")
    return place


@pytest.fixture(scope="package")
def place(shared_place: Place) -> Place:
    """The same; some files have places of their own under this name."""
    return shared_place


@pytest.fixture(autouse=True, scope="module")
def nothing_goes_on(shared_place: Place) -> Iterator[None]:
    """End what the tests of a file have left: the services would ask Prefect about it for as long as they live."""
    yield
    shared_place.end_all()


@pytest.fixture(scope="package")
def service(idle: PrefectStack, place: Place) -> Iterator[Service]:
    service = start(idle, place)
    yield service
    service.stop()


@pytest.fixture(scope="package")
def services(service: Service, idle: PrefectStack, place: Place) -> Iterator[tuple[Service, Service]]:
    """The service, and a second one on its lake, for what they might do against each other."""
    second = start(idle, place)
    yield service, second
    second.stop()


@pytest.fixture(scope="package")
def guarded_place(tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer) -> Place:
    place = Place(tmp_path_factory.mktemp("guarded"), judge_server, GUARD)
    place.write("a", "b", "c", "d")
    return place


@pytest.fixture(scope="package")
def guarded(idle: PrefectStack, guarded_place: Place) -> Iterator[Service]:
    """A service that has a token and little patience, and trusts the tests' own address as a proxy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(idle.environment, "EVALAKE_API_TOKEN", TOKEN)
        service = start(idle, guarded_place)
    yield service
    service.stop()
