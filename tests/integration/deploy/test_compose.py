"""Compose and units start the same parts, with an image of this release, and demand what the examples offer."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
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


def _unit(name: str) -> str:
    """The command that a unit starts."""
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / f"evalake-{name}.service")
    return unit["Service"]["ExecStart"]
