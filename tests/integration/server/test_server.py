"""SIGKILL of the worker, of the API, and of both, in the middle of a scoring: nothing stays in progress."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from evalake.contracts.tables import CALLS
from tests.e2e.processes import PATIENCE_SECONDS, PrefectStack, Process, have_ended, wait_until
from tests.integration.server.services import IMPATIENT, JUDGE, SERVICE, Place, Service, deploy, start
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

SLOW_SECONDS = 3600.0  # longer than any test waits: only a kill ends such an answer, or another one
EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectStack]:
    """A server with the scoring flow deployed to a pool, for workers that a test starts.

    Its tests score equal sessions in lakes of their own: what one of them left in Prefect is not taken for the other's.
    """
    with PrefectStack(tmp_path_factory.mktemp("deaths")) as running:
        deploy(running)
        yield running


@pytest.fixture
def place(tmp_path: Path, model_server: ModelServer) -> Place:
    place = Place(tmp_path, model_server, IMPATIENT)
    place.write("first", "second")
    return place


def test_a_killed_worker_fails_its_scoring_and_another_can_do_it_again_though_the_service_is_killed(
    stack: PrefectStack, place: Place
) -> None:
    service = start(stack, place)
    worker = _worker(stack)
    place.answer(tools_latency=SLOW_SECONDS)
    lost = service.ask("first").json()["score_id"]
    _wait_for_phase(service, "identifying_missing_tools")
    wait_until(lambda: place.lake.frame(CALLS).collect().height == 1, "the first turn in the ledger")
    worker.kill_all()
    failed = service.wait_for("first", "failed")
    assert failed["score_id"] == lost
    assert "no sign of life" in failed["error_message"]
    assert service.ask("first").json()["score_id"] == lost  # without force it stays as it is
    questions = _asked(place)
    assert service.ask("first", force=True).status_code == 202
    service.kill()
    place.configuration.write_text(place.configuration.read_text().replace(IMPATIENT, SERVICE))
    worker = _worker(stack)
    wait_until(lambda: _asked(place) > questions, "the question about the missing tools")
    service = start(stack, place)
    place.answer()
    again = service.wait_for("first", "completed", "failed")
    assert (again["status"], again["total_score"], again["replicate"]) == ("completed", 60, 0)
    assert [row["status"] for row in place.scores("first")] == ["failed", "completed"]
    assert _asked(place) == 3  # the first turn was paid for
    assert [tool["tool_name"] for tool in again["missing_tools"]] == ["kubectl-logs"]
    assert service.ask("first").status_code == 200
    worker.kill_all()  # told to stop it would take its time
    service.stop()


def test_one_command_is_enough_and_its_death_is_survived(tmp_path: Path, place: Place) -> None:
    """No Prefect server is configured: the service brings its own, and everything dies with it."""
    alone = PrefectStack(tmp_path / "alone")
    alone.environment["PREFECT_API_URL"] = ""
    service = start(alone, place)
    place.answer(latency=SLOW_SECONDS)
    service.ask("first")
    wait_until(lambda: _asked(place) > 0, "the first question to the judge")
    _tells_no_page_of_another_site(service)
    _wait_for_phase(service, "analyzing_methodology")
    service.kill()
    place.answer()

    service = start(alone, place)
    failed = service.wait_for("first", "failed", "completed")
    assert failed["status"] == "failed"
    assert service.ask("first", force=True).status_code == 202
    assert service.wait_for("first", "completed", "failed")["total_score"] == 60
    assert {row["status"] for row in place.scores("first")} == {"failed", "completed"}

    place.answer(latency=SLOW_SECONDS)
    questions = _asked(place)
    service.ask("second")
    wait_until(lambda: _asked(place) > questions, "the question about the second session")
    _drain(service, place)


def _tells_no_page_of_another_site(service: Service) -> None:
    """The Prefect server beside a service answers to nobody without its password, whichever page asks."""
    answers = [answer for port in _ports(service) if (answer := _ask(port)) is not None]
    # Pages that let nobody in, and end with the service, are linked nowhere
    assert service.http.get("/api/v1/status").json()["prefect_url"] is None
    assert 401 in [answer.status_code for answer in answers]
    assert all(answer.status_code in (401, 403, 404, 405) for answer in answers)
    assert not [answer for answer in answers if answer.headers.get("access-control-allow-origin") in ("*", EVIL)]


def _ports(service: Service) -> list[int]:
    """The ports on which a service or any process that it started listens."""
    process = psutil.Process(service.process.popen.pid)
    family = [process, *process.children(recursive=True)]
    sockets = [connection for each in family for connection in each.net_connections("tcp")]
    return sorted({each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN})


def _ask(port: int) -> httpx.Response | None:
    """What a port answers a page of another site; None where it speaks no HTTP."""
    try:
        return httpx.post(
            f"http://127.0.0.1:{port}/api/block_documents/filter",
            json={"include_secrets": True},
            headers={"origin": EVIL},
            timeout=600,
        )
    except httpx.RemoteProtocolError:
        return None


def _drain(service: Service, place: Place) -> None:
    """Told to stop in the middle of a scoring, the service refuses new ones and lets this one come to its end."""
    (prefect,) = psutil.Process(service.process.popen.pid).children(recursive=True)
    service.process.popen.terminate()
    wait_until(lambda: service.http.get("/api/v1/status").json()["draining"], "the drain")
    refused = service.ask("first", force=True)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert service.ask("second").status_code == 202  # what is there is still told
    place.answer()
    service.process.popen.wait(PATIENCE_SECONDS)
    assert [row["status"] for row in place.scores("second")] == ["completed"]
    assert have_ended([prefect])
    assert "Traceback" not in service.process.log.read_text()
    service.stop()


def _worker(stack: PrefectStack) -> Process:
    return stack.start("prefect", "worker", "start", "--pool", "scores")


def _wait_for_phase(service: Service, phase: str) -> None:
    def reached() -> bool:
        score = service.score("first").json()
        return (score["status"], score["phase"]) == ("in_progress", phase)

    wait_until(reached, f"the phase {phase}")


def _asked(place: Place) -> int:
    return len(place.server.requests(model=JUDGE.partition("/")[2]))
