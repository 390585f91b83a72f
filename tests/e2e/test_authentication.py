"""A Prefect server that asks for a password: with it everything works; without it nothing does, and a line says why."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalake.contracts.tables import RUNS
from tests.e2e.processes import ROOT, PrefectStack, wait_until
from tests.e2e.test_deploy import make_deploy
from tests.integration.cli.command import evalake
from tests.integration.flows.workplace import MODEL, Workplace
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

PASSWORD = "evalake:correct-horse-battery"
DEPLOYMENT = "evaluate/command-guard-nightly"


class Guarded(PrefectStack):
    """A stack whose server asks for the password, and whose processes know it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"PREFECT_SERVER_API_AUTH_STRING": PASSWORD, "PREFECT_API_AUTH_STRING": PASSWORD})

    def _request(self, method: str, path: str, **content: Any) -> Any:  # type: ignore[override]
        return super()._request(method, path, auth=tuple(PASSWORD.split(":")), **content)

    def without_password(self, password: str = "") -> dict[str, str]:
        """The environment of somebody who does not know it."""
        return {**self.environment, "PREFECT_API_AUTH_STRING": password}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(tmp_path_factory.mktemp("guarded")) as stack:
        deployed = make_deploy(stack.environment)
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        stack.worker()
        yield stack


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer) -> Workplace:
    model_server.rule(reply='{"action": "BLOCK"}')
    return Workplace(tmp_path, model_server)


def test_who_knows_the_password_deploys_and_a_worker_runs(guarded: Guarded, work: Workplace) -> None:
    flow_run = guarded.run(DEPLOYMENT, work.parameters(work.dataset(5)))
    assert guarded.wait_for(flow_run, "Completed", "Failed", "Crashed") == "Completed"
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert (run["state"], run["calls_made"], run["flow_run_id"]) == ("completed", 5, flow_run)


def test_the_command_runs_with_the_password(guarded: Guarded, work: Workplace) -> None:
    done = _run(work, guarded.environment)
    assert done.returncode == 0, done.stderr
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert guarded.get(f"/flow_runs/{run['flow_run_id']}")["state_name"] == "Completed"


@pytest.mark.parametrize("password", ["", "evalake:wrong"])
def test_without_the_password_the_command_says_so_in_one_line(guarded: Guarded, work: Workplace, password: str) -> None:
    done = _run(work, guarded.without_password(password))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"evalake: the Prefect server at {guarded.url} refuses us: check PREFECT_API_AUTH_STRING\n")
    assert not work.server.seen


@pytest.mark.parametrize("password", ["", "evalake:wrong"])
def test_without_the_password_nothing_is_deployed_and_nothing_read(guarded: Guarded, password: str) -> None:
    done = make_deploy(guarded.without_password(password))
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("deploy: ")]
    assert "PREFECT_API_AUTH_STRING" in line
    login = tuple(password.split(":")) if password else None
    for path in ("/flow_runs/filter", "/block_documents/filter", "/deployments/filter"):
        assert httpx.post(guarded.url + path, json={}, auth=login, timeout=60).status_code == 401  # type: ignore[arg-type]
    assert httpx.get(guarded.url + "/health", timeout=60).status_code == 200


def test_a_worker_without_the_password_gets_no_work(guarded: Guarded, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with log.open("wb") as file:
        worker = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", "evalake", "--name", "stranger"],
            cwd=ROOT,
            env={**os.environ, **guarded.without_password()},
            stdout=file,
            stderr=file,
        )
        try:
            wait_until(lambda: "401" in log.read_text(errors="replace") or worker.poll() is not None, "a refusal")
        finally:
            worker.kill()
            worker.wait()
    assert "401" in log.read_text(errors="replace")
    workers = guarded.post("/work_pools/evalake/workers/filter", {})
    assert "stranger" not in {each["name"] for each in workers}


def test_a_server_that_is_not_there_is_said_in_one_line(work: Workplace, tmp_path: Path) -> None:
    done = _run(work, {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_HOME": str(tmp_path / "home")})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "evalake: no Prefect server answers at http://127.0.0.1:9/api: start it, correct PREFECT_API_URL, or unset it "
        "to run without one\n"
    )


def _run(work: Workplace, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    order = ["run", "command_guard", "--models", MODEL, "--dataset", work.dataset(3), "--json"]
    return evalake(*order, "--lake", work.lake.uri, "--config", work.configuration, folder=work.folder, **environment)
