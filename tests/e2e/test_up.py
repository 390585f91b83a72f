"""`evalake up`, as somebody uses it who has just made a project: after it there are schedules, a worker and pages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.processes import command_lines, contents, have_ended, require_no_errors, wait_until
from tests.integration.cli.command import evalake, evalake_here
from tests.servers.chromium import launched

pytestmark = pytest.mark.e2e


class Project:
    """A folder on a machine whose user has started nothing yet."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder = folder / "state", folder / "mine"
        self.folder.mkdir()

    def evalake(self, *words: str, code: int = 0) -> str:
        """What the command prints, run in the project."""
        place = {"XDG_STATE_HOME": str(self.home), "EVALAKE_LAKE": str(self.folder / "lake"), "PREFECT_API_URL": ""}
        run = evalake_here if code or words[0] in ("init", "trust", "status", "down") else evalake
        done = run(*words, folder=self.folder, **place)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    def status(self) -> Any:
        """What `evalake status` says."""
        return json.loads(self.evalake("status", "--json"))

    def processes(self) -> list[psutil.Process]:
        """The supervisor and all that it has started."""
        supervisor = psutil.Process(self.status()["pid"])
        return [supervisor, *supervisor.children(recursive=True)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("up"))
    project.evalake("init", ".")
    project.evalake("trust", "--forget")  # as a folder of somebody else's is
    assert "--trust-folder" in project.evalake("up", code=2)  # its settings name code to run
    project.evalake("up", "--trust-folder")
    processes = project.processes()
    log = Path(project.status()["log"])
    assert "is online" not in log.read_text()  # the workers come after the pages, which miss none
    yield project
    project.evalake("down")
    assert have_ended(processes)
    assert "nothing runs in the background" in project.evalake("status", code=1)
    require_no_errors(log)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with launched() as running:
        yield running


def test_what_is_deployed_runs_and_a_command_uses_the_same_server(project: Project, browser: Browser) -> None:
    project.evalake("prefect", "deployment", "run", "evaluate/questions-nightly")
    project.evalake("run", "questions", "--config", "evalake.toml")
    there = project.status()
    user, password = there["password"].split(":")

    def states() -> list[str]:
        asked = {
            "flows": {"name": {"any_": ["evaluate"]}},
            "flow_runs": {"state": {"type": {"not_any_": ["SCHEDULED"]}}},
        }
        runs = httpx.post(f"{there['prefect']}/flow_runs/filter", json=asked, auth=(user, password), timeout=600).json()
        return [run["state_name"] for run in runs]

    wait_until(lambda: states() == ["Completed"] * 2, "the end of both runs")
    page = browser.new_page()
    page.goto(f"{there['pages']}/runs")  # the link is then followed in a tab that shows the pages already
    page.goto(f"{there['pages']}/runs#token={there['token']}")
    expect(page.get_by_role("table", name="Runs, newest first").get_by_role("row")).to_have_count(3)
    assert there["token"] not in page.url
    page.goto(f"{there['prefect'].removesuffix('/api')}/runs")
    page.get_by_role("textbox").fill(there["password"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="questions: ").first).to_be_visible()
    page.close()


def test_strangers_are_refused_and_passwords_are_the_users_alone(project: Project) -> None:
    there = project.status()
    assert httpx.post(f"{there['prefect']}/flows/filter", json={}, timeout=600).status_code == 401
    assert httpx.get(f"{there['pages']}/api/v1/runs", timeout=600).status_code == 401
    foreign = httpx.options(
        f"{there['prefect']}/flows/filter",
        headers={"origin": "https://elsewhere.example", "access-control-request-method": "POST"},
        timeout=600,
    )
    assert "access-control-allow-origin" not in foreign.headers
    secrets = (there["token"], there["password"].split(":")[1])
    assert not [line for line in command_lines(project.processes()) if any(secret in line for secret in secrets)]
    holding = [
        path for path, content in contents(project.home) if any(secret.encode() in content for secret in secrets)
    ]
    assert holding
    assert not [path for path in holding if path.stat().st_mode & 0o077]
    assert not (project.home / "evalake").stat().st_mode & 0o022


def test_a_second_up_starts_nothing_and_another_lake_has_servers_of_its_own(project: Project) -> None:
    before = project.status()
    assert json.loads(project.evalake("up", "--json"))["pid"] == before["pid"]
    assert project.evalake("status").splitlines()[1].startswith(f"pages    {before['pages']}/runs#token=")
    assert "nothing runs in the background" in project.evalake("status", "--lake", "another", code=1)
