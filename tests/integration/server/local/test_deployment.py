"""What deploys a project beside the server's start; tests/e2e/test_up.py has what it deploys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.server.local.deployment import require_suites
from tests.integration.cli.command import ROOT

DECLARED = """
deployments:
- {name: a, work_pool: {name: nights}}
- {name: b, work_pool: {name: days}}
- {name: c, work_pool: {name: nights}}
"""


@pytest.mark.parametrize("parameters", ["{suite: comand_guard}", "{suites: [command_guard, comand_guard]}"])
def test_a_suite_that_there_is_not_is_told_with_its_deployment(tmp_path: Path, parameters: str) -> None:
    declared = f"deployments:\n- {{name: weekly, parameters: {{}}}}\n- {{name: nightly, parameters: {parameters}}}\n"
    (tmp_path / "prefect.yaml").write_text(declared)
    told = r"the deployment nightly names the suite 'comand_guard', which there is not: choose one of command_guard, "
    with pytest.raises(UsageError, match=told):
        require_suites(tmp_path)
    (tmp_path / "prefect.yaml").write_text(declared.replace("comand", "command"))
    require_suites(tmp_path)
    require_suites(ROOT)


def test_it_ends_with_who_has_started_it_and_has_asked_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "prefect.yaml").write_text(DECLARED)
    nowhere = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "evalake.server.local.deployment", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **nowhere},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
