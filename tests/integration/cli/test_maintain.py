"""`evalake maintain`: what snapshots pin is kept; replies that look like failures are asked again."""

import json
from pathlib import Path

from evalake.storage import ledger
from evalake.storage.lake import Lake
from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported
from tests.integration.storage.rows import call


def test_maintenance_keeps_what_snapshots_pin(imported: Imported) -> None:
    assert evalake_here("maintain", "--dry-run", folder=imported.folder).returncode == 0
    done = evalake_here("maintain", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert (
        evalake_here("check", folder=imported.folder).returncode == 0
    )  # recomputes the snapshot from its pinned versions


def test_suspicious_replies_are_listed_in_eighty_columns_and_withdrawn_by_kind(tmp_path: Path) -> None:
    run_id = "run-3f1c2ab45d6e"
    ledger.append(Lake(str(tmp_path / "lake")), [call(n, response="", run_id=run_id) for n in range(3)])
    listed = evalake_here("maintain", "--suspicious", folder=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert all(word in listed.stdout for word in (run_id, "provider/model", "empty", "3 replies look like failures"))
    assert max(map(len, listed.stdout.splitlines()[:2])) <= 80  # the sentence below the table wraps
    told = json.loads(evalake_here("maintain", "--suspicious", "--json", folder=tmp_path).stdout)
    assert told["suspicious"] == [{"run_id": run_id, "model": "provider/model", "kind": "empty", "replies": 3}]
    refused = evalake_here("maintain", "--ask-again", "odd", folder=tmp_path)
    assert (refused.returncode, "choose one of error-finish" in refused.stderr) == (2, True)
    assert evalake_here("maintain", "--run", run_id, folder=tmp_path).returncode == 2
    planned = evalake_here("maintain", "--ask-again", "empty", "--run", run_id, "--dry-run", folder=tmp_path)
    assert "3 replies would be withdrawn" in planned.stdout
    done = evalake_here("maintain", "--ask-again", "empty", "--run", run_id, "--json", folder=tmp_path)
    assert json.loads(done.stdout)["withdrawn"] == 3
    assert "no reply looks like a failure" in evalake_here("maintain", "--suspicious", folder=tmp_path).stdout
