"""`evalake tables`: what is in a lake."""

import json

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_every_table_is_listed_with_its_rows(imported: Imported) -> None:
    done = evalake_here("tables", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert "metric_snapshots" in done.stdout
    told = json.loads(evalake_here("tables", "--format", "json", folder=imported.folder).stdout)
    assert {row["table"]: row["rows"] for row in told}["command_guard_results"] == 40
