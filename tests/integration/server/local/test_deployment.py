"""What deploys a project beside the server's start; tests/e2e/test_up.py has what it deploys."""

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
    told = r"the deployment nightly names the unknown suite 'comand_guard': choose one of command_guard, "
    with pytest.raises(UsageError, match=told):
        require_suites(tmp_path)
    (tmp_path / "prefect.yaml").write_text(declared.replace("comand", "command"))
    require_suites(tmp_path)
    require_suites(ROOT)
