"""Units, containers and notifications: each may do little, and says what went wrong."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalake.server.local.supervisor import PATIENCE
from evalake.tasks.runtime.server import LEASES
from tests.servers.fixtures import require

# What is deployed gets no more than it needs: units, containers and pods, by the tools that judge them.

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MOST_EXPOSED = 3.0
VALIDATE = (str(Path(sys.executable).parent / "kubernetes-validate"), "--strict")


@pytest.fixture
def systemd_analyze() -> str:
    """Where the program is."""
    program = shutil.which("systemd-analyze")
    require(program is not None, "systemd-analyze, of Debian's package systemd")
    return str(program)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_exposed_to_little(systemd_analyze: str, unit: Path) -> None:
    command = [systemd_analyze, "security", "--offline=true", "--no-pager", str(unit)]
    judged = subprocess.run(command, capture_output=True, text=True)
    (level,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", judged.stdout)
    assert float(level) <= MOST_EXPOSED, judged.stdout


def test_server_and_worker_share_neither_user_nor_keys_nor_folder() -> None:
    server, worker = (_unit(name) for name in ("server", "worker"))
    for name in ("User", "EnvironmentFile", "StateDirectory"):
        assert server[name] != worker[name]
    offered = re.findall(r"^#?(\w+)=", (DEPLOY / ".env.example").read_text(), re.MULTILINE)
    assert all(re.match("PREFECT_|POSTGRES_|EVALAKE_NOTIFY_", name) for name in offered)  # no key of a model
    services = _compose("compose.yaml")["services"]
    assert "env_file" not in services["server"]
    assert services["worker"]["env_file"] == "worker.env"
    assert not any("SERVER" in name for name in services["worker"]["environment"])


def test_a_server_without_a_password_does_not_start() -> None:
    check = _unit("server")["ExecStartPre"].removeprefix("/bin/sh -c ").strip("'")
    for password, code in (("", 1), ("evalake:secret", 0)):
        environment = {"PREFECT_SERVER_API_AUTH_STRING": password}
        done = subprocess.run(["/bin/sh", "-c", check], env=environment, capture_output=True, text=True)
        assert done.returncode == code
        assert bool(done.stdout) == bool(code)
    demanded = re.findall(r"\${(\w+):\?", (DEPLOY / "compose.yaml").read_text())
    assert "PREFECT_SERVER_API_AUTH_STRING" in demanded


def test_a_server_answers_no_page_but_its_own() -> None:
    unit = (DEPLOY / "systemd" / "evalake-server.service").read_text()
    assert "Environment=PREFECT_SERVER_CORS_ALLOWED_ORIGINS=http://127.0.0.1:4200\n" in unit
    origin = _compose("compose.yaml")["services"]["server"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    assert origin == "${PREFECT_SERVER_CORS_ALLOWED_ORIGINS:-http://127.0.0.1:4200}"


def test_a_server_knows_after_a_restart_which_runs_hold_a_place() -> None:
    ((variable, module),) = LEASES.items()
    assert find_spec(module)
    assert f"Environment={variable}={module}\n" in (DEPLOY / "systemd" / "evalake-server.service").read_text()
    assert _compose("compose.yaml")["services"]["server"]["environment"][variable] == module


def test_workers_are_as_patient_with_a_busy_server_as_those_of_the_command() -> None:
    ((variable, times),) = PATIENCE.items()
    unit = (DEPLOY / "systemd" / "evalake-worker.service").read_text()
    assert f"Environment={variable}={times}\n" in unit
    assert _compose("compose.yaml")["services"]["worker"]["environment"][variable] == times
    (worker,) = (part for part in _worker() if part["kind"] == "Deployment")
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    assert {"name": variable, "value": times} in container["env"]


@pytest.mark.parametrize("file", ["compose.yaml", "compose.postgres.yaml"])
def test_containers_write_nothing_of_their_own_and_get_time_to_end(file: str) -> None:
    for name, service in _compose(file)["services"].items():
        if service.keys() <= {"environment", "depends_on"}:
            continue  # adds to a service of compose.yaml
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["stop_grace_period"] in ("20s", "60s"), name


def test_what_a_worker_writes_has_a_place_that_it_may_write() -> None:
    unit = (DEPLOY / "systemd" / "evalake-worker.service").read_text()
    places = dict(re.findall(r"^Environment=(EVALAKE_LAKE|EVALAKE_REPORTS|PREFECT_HOME)=(\S+)$", unit, re.MULTILINE))
    assert len(places) == 3
    assert all(place.startswith("/var/lib/evalake/") for place in places.values())
    dockerfile, worker = (DEPLOY / "Dockerfile").read_text(), _compose("compose.yaml")["services"]["worker"]
    mounted = {volume.split(":")[1] for volume in worker["volumes"] if not volume.startswith(".")}
    assert mounted >= {worker["environment"]["EVALAKE_REPORTS"], *re.findall(r"EVALAKE_LAKE=(\S+)", dockerfile)}
    assert mounted == set(re.findall(r"--owner evalake (.*)", dockerfile)[0].split())  # they are the user's, not root's


def test_kubernetes_takes_the_manifests(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    manifest = _job()
    manifest["metadata"]["name"] = manifest["metadata"].pop("generateName") + "of-this-test"  # as the cluster does
    job.write_text(yaml.safe_dump(manifest))
    files = [str(DEPLOY / "kubernetes" / "worker.yaml"), str(job)]
    done = subprocess.run([*VALIDATE, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("passed") == 7
    job.write_text(job.read_text().replace("seccompProfile", "secompProfile"))
    assert subprocess.run([*VALIDATE, str(job)], capture_output=True).returncode != 0


def test_pods_keep_to_the_restricted_level_that_their_namespace_enforces() -> None:
    documents = _worker()
    (namespace,) = (each for each in documents if each["kind"] == "Namespace")
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    for pod in (deployment["spec"]["template"]["spec"], _job()["spec"]["template"]["spec"]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"sysctls", "seLinuxOptions", "windowsOptions", "appArmorProfile"} & pod["securityContext"].keys()
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
        assert all(volume.keys() & {"emptyDir", "configMap"} for volume in pod["volumes"])
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert not any("hostPort" in port for port in container.get("ports", ()))


def test_only_the_worker_may_do_something_in_the_cluster() -> None:
    documents = _worker()
    assert not any(each["kind"].startswith("Cluster") for each in documents)
    accounts = [each for each in documents if each["kind"] == "ServiceAccount"]
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    (binding,) = (each for each in documents if each["kind"] == "RoleBinding")
    assert [subject["name"] for subject in binding["subjects"]] == ["evalake-worker"]
    (role,) = (each for each in documents if each["kind"] == "Role")
    written = {resource for rule in role["rules"] if "create" in rule["verbs"] for resource in rule["resources"]}
    assert written == {"jobs"}
    assert not any("secrets" in rule["resources"] or "*" in rule["verbs"] for rule in role["rules"])
    run = _job()["spec"]["template"]["spec"]
    assert (run["serviceAccountName"], run["automountServiceAccountToken"]) == ("evalake-run", False)


def _unit(name: str) -> Any:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / f"evalake-{name}.service")
    return unit["Service"]


def _compose(file: str) -> Any:
    return yaml.safe_load((DEPLOY / file).read_text())


def _worker() -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "worker.yaml").read_text()))


def _job() -> Any:
    """The manifest of a run's job, as a worker makes it where nothing but the defaults is said."""
    template = json.loads((DEPLOY / "kubernetes" / "job-template.json").read_text())
    said = {name: each["default"] for name, each in template["variables"]["properties"].items() if "default" in each}
    made = {"command": ["prefect", "flow-run", "execute"], "env": [{"name": "A", "value": "1"}], "labels": {"a": "b"}}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        if isinstance(value, str) and (whole := re.fullmatch(r"{{ (\w+) }}", value)):
            return {"name": "evalake", **said, **made}[whole[1]]
        return value.replace("{{ name }}", "evalake") if isinstance(value, str) else value

    return filled(template["job_configuration"]["job_manifest"])


# Compose and units start the same parts, with an image of this release, and demand what the examples offer.

ROOT = Path(__file__).resolve().parents[3]
IMAGE = f"evalake:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"


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
    assert _unit("worker")["ExecStart"].split("/bin/")[-1].split() == worker["command"]
    assert _unit("server")["ExecStart"].split("/bin/")[-1].split()[:3] == server["command"][:3]
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
