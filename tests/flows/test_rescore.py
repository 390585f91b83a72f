"""The flow `rescore`: rows and snapshot of a run from the ledger alone, and what it did as a table in the UI."""

import pytest

from contracts.tables import CALLS, SNAPSHOTS
from core.errors import LakeError, UsageError
from flows.rescore import rescore
from suites.command_guard.contract import RESULTS
from tests.flows.artifacts import newest_artifact
from tests.flows.imported import Imported


def test_a_run_is_derived_again_to_the_rows_that_it_has(imported: Imported) -> None:
    before = imported.lake.frame(RESULTS).collect()
    snapshot_id = rescore(imported.guard, lake=imported.lake.uri)
    assert imported.lake.frame(RESULTS).collect().equals(before)
    assert snapshot_id in {*imported.lake.frame(SNAPSHOTS).collect()["snapshot_id"]}
    description, (counts,) = newest_artifact(f"rescore-{imported.guard}")
    assert description == f"Snapshot {snapshot_id}"
    assert counts == {"items": 6, "unanswered": 0, "landed": 0, "already_present": 6, "quarantined": 0}


def test_a_row_that_is_gone_comes_back(imported: Imported) -> None:
    before = imported.lake.frame(RESULTS).collect()
    imported.lake.open(RESULTS).delete("sample_id = 's3'")
    rescore(imported.guard, lake=imported.lake.uri)
    after = imported.lake.frame(RESULTS).collect()
    assert after.sort("sample_id").equals(before.sort("sample_id"))
    assert newest_artifact(f"rescore-{imported.guard}")[1][0]["landed"] == 1


def test_a_run_that_there_is_not_or_that_the_ledger_knows_nothing_of_is_named(imported: Imported) -> None:
    with pytest.raises(UsageError, match="has no run nothing"):
        rescore("nothing", lake=imported.lake.uri)
    imported.lake.open(CALLS).delete()
    with pytest.raises(LakeError, match=imported.guard):
        rescore(imported.guard, lake=imported.lake.uri)
