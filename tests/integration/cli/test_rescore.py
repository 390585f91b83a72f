"""`evalake rescore`: from the ledger alone, the same snapshot."""

import json

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_rescoring_gives_the_same_snapshot_from_the_ledger_alone(imported: Imported) -> None:
    done = evalake_here("rescore", imported.run, "--json", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    rows = {"landed": 0, "already_present": 40, "quarantined": 0}
    assert json.loads(done.stdout)["rows"] == rows
    versions = {row["snapshot_id"]: row["pinned_versions"] for row in imported.query("select * from snapshots")}
    assert imported.said["snapshot_id"] in versions
    values = "select metric, slice, slice_value, value, n from metric_snapshots where snapshot_id = '{}' order by all"
    before, after = (
        imported.query(values.format(i)) for i in (imported.said["snapshot_id"], json.loads(done.stdout)["snapshot_id"])
    )
    assert before == after
