"""`evalake runs`: what was run and imported, newest first."""

import json

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_an_imported_run_is_listed(imported: Imported) -> None:
    done = evalake_here("runs", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert imported.run[:12] in done.stdout
    told = json.loads(evalake_here("runs", "--format", "json", folder=imported.folder).stdout)
    assert [(run["run_id"], run["state"]) for run in told] == [(imported.run, "completed")]
