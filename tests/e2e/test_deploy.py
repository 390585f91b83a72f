"""What is deployed: by `make deploy`, twice, to a server that asks for a password, without which nothing works."""

import asyncio
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.deployments.steps.core import run_steps
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from evalake.admin import doctor
from evalake.contracts.tables import RUNS
from tests.e2e.checkout import checkout
from tests.e2e.processes import ROOT, PrefectStack, contents, wait_until
from tests.environment import environment_kept
from tests.integration.cli.command import evalake, evalake_here
from tests.integration.flows.workplace import MODEL, Workplace
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

LOGIN = ("evalake", "a-password-of-this-test")
PASSWORD = ":".join(LOGIN)
SECRET = "heliotrope-83c1"
DATASET = f"postgresql://reader:{SECRET}@127.0.0.1:9/tarsy"
LAKE = f"s3://reader:{SECRET}@bucket/lake"
HARMLESS = "postgresql://harmless-reader@127.0.0.1:9/tarsy"  # what must be found, for the search to mean anything
LATER = "2099-01-01T00:00:00Z"  # nobody is to run it
MAINTENANCE = "maintain/maintenance-daily"
AGAIN = ("--name", "maintenance-daily", "--name", "session-review-hourly", "--name", "metric-snapshot-daily")
DAILY = 'cron: "0 5 * * *"'
OFTEN = 'cron: "* * * * * */30"'  # the sixth field is seconds: nobody wants to wait for the next minute
SCHEDULES = {  # and the tag beside `evalake`
    "evaluate/command-guard-nightly": (("0 3 * * *", "UTC", "nightly"), "command_guard"),
    "evaluate/solidity-audit-weekly": (("0 4 * * 0", "UTC", "weekly"), "solidity_audit"),
    "evaluate/session-review-hourly": (("15 * * * *", "UTC", "hourly"), "session_review"),
    "snapshot/metric-snapshot-daily": (("0 6 * * *", "UTC", "daily"), "snapshot"),
    "maintain/maintenance-daily": (("0 5 * * *", "UTC", "daily"), "maintenance"),
    "canary/judge-canary-daily": (("0 2 * * *", "UTC", "daily"), "canary"),
    "check/check-daily": (("30 6 * * *", "UTC", "daily"), "check"),
    "backup/backup-daily": (("0 7 * * *", "UTC", "daily"), "backup"),
    "collect/collect-hourly": (("45 * * * *", "UTC", "hourly"), "collect"),
    "missed/missed-runs-daily": (("30 7 * * *", "UTC", "daily"), "missed"),
    "roadmap/roadmap-weekly": (("0 8 * * 1", "UTC", "weekly"), "roadmap"),
    "review/review-on-demand": (None, "review"),
    "rescore/rescore-on-demand": (None, "rescore"),
    "score-session/on-demand": (None, "session_review"),
}
AT_ONCE = {"score-session/on-demand": 4}  # all others run one at a time
REQUIRED = {
    "evaluate/command-guard-nightly": ["suite"],
    "evaluate/solidity-audit-weekly": ["suite"],
    "evaluate/session-review-hourly": ["suite"],
    "review/review-on-demand": ["run_id"],
    "rescore/rescore-on-demand": ["run_id"],
    "score-session/on-demand": ["score_id"],
}
DEPLOY = ROOT / "deploy"
IMAGE = f"evalake:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"


def make_deploy(environment: dict[str, str], project: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """`make deploy` in a checkout, with the Python of this test, which is set up already."""
    command = ["make", "--old-file=setup", f"BIN={Path(sys.executable).parent}", "deploy"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MAKE"))}
    return subprocess.run(command, cwd=project, env={**inherited, **environment}, capture_output=True, text=True)


def deploy_here() -> None:
    """What `make deploy` runs, in this process, which must end before it has deployed anything."""
    runpy.run_path(str(DEPLOY / "deploy.py"), run_name="__main__")


class Deployed(PrefectStack):
    """A server with a password, to which everything is deployed, with one schedule that has little time."""

    def __init__(self, folder: Path) -> None:
        self.lake = folder / "lake"
        self._project = checkout(folder / "project", {DAILY: OFTEN})
        login = {"PREFECT_SERVER_API_AUTH_STRING": PASSWORD, "PREFECT_API_AUTH_STRING": PASSWORD}
        super().__init__(folder / "prefect", {**login, "EVALAKE_LAKE": str(self.lake)})

    def deploy_all(self) -> None:
        """Deploy all by `make deploy`, and some of it again by `evalake prefect deploy`, which does the same."""
        done = make_deploy(self.environment, self._project)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "hint     worker          no worker has polled" in done.stdout
        self.first = self._deployments()
        done = evalake("prefect", "deploy", *AGAIN, folder=self._project, **self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        self.second = self._deployments()
        self.pools = self.post("/work_pools/filter", {})
        self.automations = self.post("/automations/filter", {})

    def _deployments(self) -> dict[str, dict[str, Any]]:
        flows = {flow["id"]: flow["name"] for flow in self.post("/flows/filter", {})}
        return {f"{flows[each['flow_id']]}/{each['name']}": each for each in self.post("/deployments/filter", {})}

    def _request(self, method: str, path: str, **content: Any) -> Any:  # type: ignore[override]
        return super()._request(method, path, auth=LOGIN, **content)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with Deployed(tmp_path_factory.mktemp("deployed")) as stack:
        stack.deploy_all()
        yield stack


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer) -> Workplace:
    model_server.rule(reply='{"action": "BLOCK"}')
    return Workplace(tmp_path, model_server)


def test_a_scheduled_run_is_made_by_the_server_and_completed_by_a_worker(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = deployed.worker()
    deployment = deployed.get(f"/deployments/name/{MAINTENANCE}")
    assert not deployment["paused"]

    def first_ended() -> dict[str, Any] | None:
        runs = deployed.post("/flow_runs/filter", {"flow_runs": {"deployment_id": {"any_": [deployment["id"]]}}})
        ended = [run for run in runs if run["state_type"] in ("COMPLETED", "FAILED", "CRASHED")]
        return min(ended, key=lambda run: run["expected_start_time"]) if ended else None

    run = wait_until(first_ended, "the end of a scheduled run")
    assert (run["state_name"], run["auto_scheduled"], run["created_by"]["type"]) == ("Completed", True, "SCHEDULE")
    monkeypatch.setattr(doctor, "LATEST_HEARTBEAT", timedelta(days=1))  # a busy worker's comes late
    with as_owner(deployed, PASSWORD):
        seen = evalake_here("doctor", "--lake", deployed.lake, "--json", folder=ROOT)
    levels = {check["check"]: check["level"] for check in json.loads(seen.stdout)["checks"]}
    assert [levels[name] for name in ("server", "deployments", "scheduler", "worker")] == ["ok"] * 4
    deployed.post(f"/deployments/{deployment['id']}/pause_deployment", {})
    worker.stop()


def test_every_deployment_has_its_schedule(deployed: Deployed) -> None:
    seen = {name: [_schedule(each) for each in one["schedules"]] for name, one in deployed.first.items()}
    declared = {name: [] if schedule is None else [schedule] for name, (schedule, _) in SCHEDULES.items()}
    assert seen == {**declared, MAINTENANCE: [("* * * * * */30", "UTC", "daily")]}


def test_every_deployment_has_its_tags_limit_pool_and_environment(deployed: Deployed) -> None:
    for name, (_, tag) in SCHEDULES.items():
        one = deployed.first[name]
        assert set(one["tags"]) == {"evalake", tag}
        assert one["global_concurrency_limit"]["limit"] == AT_ONCE.get(name, 1)
        assert one["concurrency_options"]["collision_strategy"] == "ENQUEUE"
        assert one["concurrency_options"]["grace_period_seconds"] == 1800  # a busy machine starts processes slowly
        assert one["work_pool_name"] == "evalake"
        assert one["job_variables"]["env"]["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


def test_a_worker_finds_evalake_where_its_own_environment_says(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deployed.environment["EVALAKE_HOME"]  # the machine that deploys has one, too
    monkeypatch.chdir(ROOT)  # and back again
    monkeypatch.setenv("EVALAKE_HOME", str(tmp_path))
    with as_owner(deployed, PASSWORD):
        for one in deployed.first.values():
            os.chdir(ROOT)
            asyncio.run(run_steps(one["pull_steps"]))
            assert Path.cwd() == tmp_path.resolve()


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_form_explains_every_parameter(deployed: Deployed, name: str) -> None:
    schema = deployed.first[name]["parameter_openapi_schema"]
    # The order of a run names its lake; what was missed is seen by the server alone.
    assert {"lake", "order"} & schema["properties"].keys() or name == "missed/missed-runs-daily"
    for parameter in schema["properties"].values():
        assert len(parameter["description"]) > 10
    assert schema.get("required", []) == REQUIRED.get(name, [])


def test_a_run_with_an_unknown_parameter_is_refused(deployed: Deployed) -> None:
    deployment = deployed.get(f"/deployments/name/{MAINTENANCE}")
    with pytest.raises(AssertionError, match="'lmit' was unexpected"):
        deployed.post(f"/deployments/{deployment['id']}/create_flow_run", {"parameters": {"lmit": 5}})


def test_deploying_again_changes_nothing(deployed: Deployed) -> None:
    assert [(pool["name"], pool["type"]) for pool in deployed.pools] == [("evalake", "process")]
    assert deployed.second.keys() == deployed.first.keys()
    for name, before in deployed.first.items():
        after = deployed.second[name]
        assert after["id"] == before["id"]
        for part in ("parameters", "tags", "job_variables", "parameter_openapi_schema", "pull_steps"):
            assert after[part] == before[part]
        assert [_schedule(each) for each in after["schedules"]] == [_schedule(each) for each in before["schedules"]]


def test_the_example_of_an_automation_is_there_once(deployed: Deployed) -> None:
    began = ["evalake.judge-version.began"]
    (automation,) = [each for each in deployed.automations if each["trigger"]["expect"] == began]
    assert automation["enabled"]
    (action,) = automation["actions"]
    assert (action["type"], action["deployment_id"]) == (
        "run-deployment",
        deployed.second["snapshot/metric-snapshot-daily"]["id"],
    )


def test_without_the_password_nothing_is_deployed_which_one_line_says_and_nothing_is_read(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # and back again
    with as_owner(deployed, "evalake:another"), pytest.raises(SystemExit) as refused:
        deploy_here()
    line = str(refused.value)
    assert line.startswith("deploy: ")
    assert "PREFECT_API_AUTH_STRING" in line
    assert "\n" not in line
    for login in (None, ("evalake", "another")):
        for path in ("/flow_runs/filter", "/block_documents/filter", "/deployments/filter"):
            assert httpx.post(deployed.url + path, json={}, auth=login, timeout=600).status_code == 401
    assert httpx.get(deployed.url + "/health", timeout=600).status_code == 200


def test_the_command_runs_with_the_password(deployed: Deployed, work: Workplace) -> None:
    with as_owner(deployed, PASSWORD), deployed.here(work.folder / "results"):
        done = evalake_here(*order(work), folder=work.folder)
    assert done.returncode == 0, done.stderr
    (run,) = work.rows(RUNS).iter_rows(named=True)
    assert deployed.get(f"/flow_runs/{run['flow_run_id']}")["state_name"] == "Completed"


@pytest.mark.parametrize("password", ["", "evalake:wrong"])
def test_without_the_password_the_command_says_so_in_one_line(
    deployed: Deployed, work: Workplace, password: str
) -> None:
    with as_owner(deployed, password):
        done = evalake_here(*order(work), folder=work.folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert complaints(done) == [
        f"evalake: the Prefect server at {deployed.url} refuses us: check PREFECT_API_AUTH_STRING"
    ]
    assert not work.server.seen


def test_a_worker_without_the_password_gets_no_work(deployed: Deployed) -> None:
    worker = deployed.worker("--name", "stranger", PREFECT_API_AUTH_STRING="")
    wait_until(lambda: "401" in worker.log.read_text(errors="replace") or worker.popen.poll() is not None, "a refusal")
    worker.kill()
    assert "401" in worker.log.read_text(errors="replace")
    workers = deployed.post("/work_pools/evalake/workers/filter", {})
    assert "stranger" not in {each["name"] for each in workers}


def test_a_server_that_is_not_there_is_said_in_one_line(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "http://127.0.0.1:9/api"
    monkeypatch.chdir(ROOT)  # and back again
    with temporary_settings({PREFECT_API_URL: nobody}):
        with pytest.raises(SystemExit, match=f"^deploy: no Prefect server answers at {nobody}; "):
            deploy_here()
        done = evalake_here(*order(work), folder=work.folder, PREFECT_API_URL=nobody)
    assert (done.returncode, done.stdout) == (1, "")
    assert complaints(done) == [
        f"evalake: no Prefect server answers at {nobody}: start it, correct PREFECT_API_URL, or unset it to run "
        "without one"
    ]


def test_a_server_takes_the_job_template_for_kubernetes(deployed: Deployed) -> None:
    template = json.loads((DEPLOY / "kubernetes" / "job-template.json").read_text())
    used = set(re.findall(r"{{ (\w+) }}", json.dumps(template["job_configuration"])))
    assert used == template["variables"]["properties"].keys()
    assert template["variables"]["properties"]["image"]["default"] == IMAGE
    pool = {"name": "cluster", "type": "kubernetes", "base_job_template": template}
    assert deployed.post("/work_pools/", pool)["base_job_template"] == template


def test_a_password_in_a_url_is_refused_before_anything_keeps_it(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalake.server.local.server.TemporaryServer", lambda: None)  # what is refused needs none
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (tmp_path / "evalake.toml").write_text(f'[models."openai/m"]\napi_base = "https://u:{SECRET}@127.0.0.1:9/v1"\n')
    suite, at = ("run", "session_review"), ("--lake", tmp_path / "lake")
    for command in (
        (*suite, "--dataset", DATASET, *at),
        (*suite, "--lake", LAKE),
        (*suite, "--config", tmp_path / "evalake.toml", *at),
        ("import", DATASET, "--suite", "session_review", *at),
        ("serve", "--sessions", DATASET, "--port", "0", *at),
        ("check", "--lake", LAKE),
    ):
        refused = evalake_here(*command, folder=elsewhere)
        assert refused.returncode in (1, 2), refused.stderr
        assert "password" in refused.stderr
        assert SECRET not in refused.stdout + refused.stderr
    (tmp_path / "evalake.toml").unlink()

    deployments = deployed.post("/deployments/filter", {})
    datasets = next(each for each in deployments if each["name"].startswith("session-review"))
    assert _asked(deployed, datasets["id"], {"suite": "session_review", "datasets": [HARMLESS]}) == 201
    for value in ([DATASET], DATASET, ["starter", DATASET], f"starter\n{DATASET}"):
        assert _asked(deployed, datasets["id"], {"suite": "session_review", "datasets": value}) in (409, 422)
    with_lake = [each for each in deployments if "lake" in each["parameter_openapi_schema"]["properties"]]
    assert len(with_lake) > 8
    for deployment in with_lake:
        required = dict.fromkeys(deployment["parameter_openapi_schema"].get("required", []), "x")
        parameters = {**required, **deployment["parameters"], "lake": LAKE}
        assert _asked(deployed, deployment["id"], parameters) in (409, 422), deployment["name"]

    kept = [file for folder in (deployed.folder, tmp_path) for file in contents(folder)]
    assert _holding(HARMLESS, kept)
    assert not _holding(SECRET, kept)


def _asked(stack: Deployed, deployment: str, parameters: dict[str, object]) -> int:
    """How the server answers whoever asks for a run, as its form and any client do."""
    body = {"parameters": parameters, "state": {"type": "SCHEDULED", "state_details": {"scheduled_time": LATER}}}

    def answer() -> int | None:
        response = httpx.post(
            f"{stack.url}/deployments/{deployment}/create_flow_run", json=body, auth=LOGIN, timeout=600
        )
        return None if response.status_code == httpx.codes.SERVICE_UNAVAILABLE else response.status_code

    return int(wait_until(answer, "an answer other than that the database is busy"))


def _holding(text: str, files: list[tuple[Path, bytes]]) -> list[str]:
    return [str(path) for path, content in files if text.encode() in content]


def test_the_operations_page_names_what_there_is() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for name in SCHEDULES:
        assert f"`{name}`" in page
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page):
        assert (ROOT / "docs" / link).exists(), link
    for command in ("deploy/compose.yaml up", "make deploy", "evalake-*.service"):
        assert command in page
    assert f"`{IMAGE}`" in page
    assert f"--tag {IMAGE} " in (DEPLOY / "Dockerfile").read_text()


def order(work: Workplace) -> tuple[object, ...]:
    """The words of a run of three commands."""
    words = ("run", "command_guard", "--models", MODEL, "--dataset", work.dataset(3), "--json")
    return (*words, "--lake", work.lake.uri, "--config", work.configuration)


@contextmanager
def as_owner(deployed: Deployed, password: str) -> Iterator[None]:
    """Have this process use the server with a password."""
    known = {"PREFECT_API_URL": deployed.url, "PREFECT_API_AUTH_STRING": password}
    settings = {PREFECT_API_URL: deployed.url, PREFECT_API_AUTH_STRING: password}
    with environment_kept(known), temporary_settings(settings):
        yield


def complaints(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The lines of its own with which a command ended."""
    return [line for line in done.stderr.splitlines() if line.startswith("evalake: ")]


def _schedule(schedule: dict[str, Any]) -> tuple[str, str, str]:
    return schedule["schedule"]["cron"], schedule["schedule"]["timezone"], schedule["slug"]
