"""What is deployed: by `make deploy`, twice, to a server that asks for a password; and that workers run it."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from prefect.deployments.steps.core import run_steps
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import ROOT, PrefectStack
from tests.integration.cli.command import evalake, recorded
from tests.integration.server.services import Place, start
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

LOGIN = ("evalake", "a-password-of-this-test")
SCHEDULES = {
    "evaluate/command-guard-nightly": ("0 3 * * *", "UTC", "nightly"),
    "evaluate/solidity-audit-weekly": ("0 4 * * 0", "UTC", "weekly"),
    "evaluate/session-review-hourly": ("15 * * * *", "UTC", "hourly"),
    "snapshot/metric-snapshot-daily": ("0 6 * * *", "UTC", "daily"),
    "maintain/maintenance-daily": ("0 5 * * *", "UTC", "daily"),
    "canary/judge-canary-daily": ("0 2 * * *", "UTC", "daily"),
    "check/check-daily": ("30 6 * * *", "UTC", "daily"),
    "backup/backup-daily": ("0 7 * * *", "UTC", "daily"),
    "missed/missed-runs-daily": ("30 7 * * *", "UTC", "daily"),
    "roadmap/roadmap-weekly": ("0 8 * * 1", "UTC", "weekly"),
    "review/review-on-demand": None,
    "rescore/rescore-on-demand": None,
    "score-session/on-demand": None,
}
TAGS = {
    "evaluate/command-guard-nightly": "command_guard",
    "evaluate/solidity-audit-weekly": "solidity_audit",
    "evaluate/session-review-hourly": "session_review",
    "snapshot/metric-snapshot-daily": "snapshot",
    "maintain/maintenance-daily": "maintenance",
    "canary/judge-canary-daily": "canary",
    "check/check-daily": "check",
    "backup/backup-daily": "backup",
    "missed/missed-runs-daily": "missed",
    "roadmap/roadmap-weekly": "roadmap",
    "review/review-on-demand": "review",
    "rescore/rescore-on-demand": "rescore",
    "score-session/on-demand": "session_review",
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


class Deployed:
    """A server with a password, to which everything has been deployed twice. No worker: nothing runs on it."""

    def __init__(self, server: PrefectStack) -> None:
        self.environment = server.environment
        self.url = server.url
        self.first = self._deploy()
        self.second = self._deploy()
        self.pools = self.post("/work_pools/filter", {})
        self.automations = self.post("/automations/filter", {})

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """POST to a path of the server's API."""
        answer = httpx.post(self.url + path, json=body, auth=LOGIN, timeout=30)
        assert answer.is_success, answer.text
        return answer.json()

    def _deploy(self) -> dict[str, dict[str, Any]]:
        done = make_deploy(self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        flows = {flow["id"]: flow["name"] for flow in self.post("/flows/filter", {})}
        return {f"{flows[each['flow_id']]}/{each['name']}": each for each in self.post("/deployments/filter", {})}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    login = {"PREFECT_SERVER_API_AUTH_STRING": ":".join(LOGIN), "PREFECT_API_AUTH_STRING": ":".join(LOGIN)}
    with PrefectStack(tmp_path_factory.mktemp("deployed"), login) as server:
        yield Deployed(server)


def test_every_deployment_has_its_schedule(deployed: Deployed) -> None:
    seen = {name: [_schedule(each) for each in one["schedules"]] for name, one in deployed.first.items()}
    assert seen == {name: [] if schedule is None else [schedule] for name, schedule in SCHEDULES.items()}


def test_every_deployment_has_its_tags_limit_pool_and_environment(deployed: Deployed) -> None:
    for name, tag in TAGS.items():
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
    with temporary_settings({PREFECT_API_URL: deployed.url, PREFECT_API_AUTH_STRING: ":".join(LOGIN)}):
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


def test_a_wrong_password_is_said_in_one_line(deployed: Deployed) -> None:
    done = make_deploy({**deployed.environment, "PREFECT_API_AUTH_STRING": "evalake:another"})
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("deploy: ")]
    assert "PREFECT_API_AUTH_STRING" in line
    assert "Traceback" not in done.stderr


def test_a_server_that_does_not_answer_is_said_in_one_line(tmp_path: Path) -> None:
    nobody = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_HOME": str(tmp_path)}
    done = make_deploy(nobody)
    assert done.returncode != 0
    assert "deploy: no Prefect server answers at http://127.0.0.1:9/api" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_takes_the_job_template_for_kubernetes(deployed: Deployed) -> None:
    template = json.loads((DEPLOY / "kubernetes" / "job-template.json").read_text())
    used = set(re.findall(r"{{ (\w+) }}", json.dumps(template["job_configuration"])))
    assert used == template["variables"]["properties"].keys()
    assert template["variables"]["properties"]["image"]["default"] == IMAGE
    pool = {"name": "cluster", "type": "kubernetes", "base_job_template": template}
    assert deployed.post("/work_pools/", pool)["base_job_template"] == template


def test_compose_and_units_start_the_same_parts() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    server, deploy, worker = (services[name] for name in ("server", "deploy", "worker"))
    assert {service["image"] for service in services.values()} == {IMAGE}
    assert all((DEPLOY / service["build"]["context"]).resolve() == ROOT for service in services.values())
    assert all((ROOT / service["build"]["dockerfile"]).is_file() for service in services.values())
    assert (ROOT / deploy["command"][-1]).is_file()
    (port,) = server["ports"]
    assert port == "127.0.0.1:4200:4200"  # nobody else's machine reaches it
    assert f":{server['command'][-1]}/api" in worker["environment"]["PREFECT_API_URL"]
    mounted = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    assert mounted == compose["volumes"].keys() | {"./evalake.toml"}
    assert (DEPLOY / "evalake.toml").is_file()
    assert _unit("worker").split("/bin/")[-1].split() == worker["command"]
    assert _unit("server").split("/bin/")[-1].split()[:3] == server["command"][:3]
    pools = {one["work_pool"]["name"] for one in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}
    assert pools == {worker["command"][-1]}


def test_what_compose_demands_is_in_the_example_and_has_no_value() -> None:
    examples = [(DEPLOY / name).read_text() for name in (".env.example", "worker.env.example")]
    offered = dict(re.findall(r"^#?(\w+)=(.*)$", "".join(examples), re.MULTILINE))
    files = [(DEPLOY / name).read_text() for name in ("compose.yaml", "compose.postgres.yaml")]
    demanded = set(re.findall(r"\${(\w+)", "".join(files)))
    assert demanded
    assert demanded <= offered.keys()
    assert all(not value for name, value in offered.items() if re.search("AUTH|_KEY|PASSWORD", name))


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


def test_a_worker_maintains_measures_and_rescores(stack: PrefectStack, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for first in (0, 20):  # two files in each table
        file = tmp_path / "recorded.jsonl"
        file.write_text("".join(recorded(sample) + "\n" for sample in range(first, first + 20)))
        done = evalake("import", file, "--suite", "command_guard", "--lake", lake.uri, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    newest = lake.frame(RUNS).collect().sort("started_at").row(-1, named=True)
    before = lake.version(RESULTS)

    # Nothing has changed since the import, so there is nothing new to say.
    _complete(stack, "snapshot/metric-snapshot-daily", lake)
    assert lake.frame(SNAPSHOTS).collect().height == 2

    _complete(stack, "maintain/maintenance-daily", lake)
    rows = {row["table"]: row for row in _artifact(stack, "maintenance")}
    assert (rows[RESULTS.table]["files_before"], rows[RESULTS.table]["files_after"]) == (2, 1)

    _complete(stack, "snapshot/metric-snapshot-daily", lake)
    snapshots = lake.frame(SNAPSHOTS).collect().sort("created_at")
    last = snapshots.row(-1, named=True)
    assert (snapshots.height, last["run_id"]) == (3, newest["run_id"])
    assert json.loads(last["pinned_versions"])[RESULTS.table] == lake.version(RESULTS) != before
    assert _values(lake, last["snapshot_id"]) == _values(lake, newest["snapshot_id"])
    assert [row["model"] for row in _artifact(stack, "snapshot-command-guard")] == ["openai/gpt-4o-mini"]

    _complete(stack, "check/check-daily", lake)
    copy = Lake(str(tmp_path / "copy"))
    _complete(stack, "backup/backup-daily", lake, to=copy.uri)
    assert copy.frame(RESULTS).collect().height == lake.frame(RESULTS).collect().height
    assert {row["table"] for row in _artifact(stack, "backup")} >= {RESULTS.table, "calls", "runs"}
    for file in Path(copy.location(RESULTS)).glob("*/*.parquet"):  # of every version: an old one alone is not needed
        if file.parent.name != "_delta_log":
            file.unlink()
    failed = stack.run("check/check-daily", {"lake": copy.uri})
    assert stack.wait_for(failed, "Completed", "Failed", "Crashed") == "Failed"
    assert any("data files are gone" in row["problem"] for row in _artifact(stack, "check"))

    _complete(stack, "rescore/rescore-on-demand", lake, run_id=newest["run_id"])
    (counts,) = _artifact(stack, f"rescore-{newest['run_id']}")
    assert (counts["items"], counts["unanswered"], counts["landed"]) == (20, 0, 0)


def test_a_worker_scores_what_the_api_only_submits(
    stack: PrefectStack, tmp_path: Path, model_server: ModelServer
) -> None:
    place = Place(tmp_path, model_server)
    place.write("asked-for")
    service = start(stack, place)
    assert psutil.Process(service.process.popen.pid).children(recursive=True) == []  # nothing here could score
    service.ask("asked-for")
    score = service.wait_for("asked-for", "completed", "failed")
    assert (score["status"], score["total_score"]) == ("completed", 60)
    run = stack.get(f"/flow_runs/{score['flow_run_id']}")
    assert (run["work_pool_name"], run["parameters"]["lake"]) == ("evalake", place.lake.uri)
    service.stop()


def _unit(name: str) -> str:
    """The command that a unit starts."""
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / f"evalake-{name}.service")
    return unit["Service"]["ExecStart"]


def _schedule(schedule: dict[str, Any]) -> tuple[str, str, str]:
    return schedule["schedule"]["cron"], schedule["schedule"]["timezone"], schedule["slug"]


def _complete(stack: PrefectStack, deployment: str, lake: Lake, **parameters: Any) -> None:
    flow_run = stack.run(deployment, {"lake": lake.uri, **parameters})
    assert stack.wait_for(flow_run, "Completed", "Failed", "Crashed") == "Completed"


def _artifact(stack: PrefectStack, key: str) -> list[dict[str, Any]]:
    latest = stack.get(f"/artifacts/{key}/latest")
    assert latest["type"] == "table"
    rows: list[dict[str, Any]] = json.loads(latest["data"])
    return rows


def _values(lake: Lake, snapshot_id: str) -> list[dict[str, Any]]:
    values = lake.frame(METRIC_SNAPSHOTS).collect().filter(snapshot_id=snapshot_id).drop("snapshot_id", "measured_at")
    assert values.height > 0
    return values.sort("row_key").to_dicts()
