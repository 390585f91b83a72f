"""The flow `rescore`: rows and snapshot of a run from the ledger alone, and what it did as a table in the UI."""

from dataclasses import replace
from pathlib import Path

import pytest

from evalake.contracts.tables import CALLS, RUNS, SNAPSHOTS
from evalake.core.errors import LakeError, UsageError
from evalake.flows.evaluate import evaluate
from evalake.flows.rescore import rescore
from evalake.server.viewer.item import item_contents
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.session_review.contract import RESULTS as SCORES
from evalake.tasks.runtime.context import RunContext
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported


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


def test_sessions_that_were_scored_under_another_mark_are_found_and_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a lake of a version that made marks otherwise: neither the viewer nor a rescoring can make them."""
    lake = Lake(str(tmp_path / "lake"))
    with monkeypatch.context() as older:
        older.setattr(RunContext, "fenced", lambda _, item: replace(item, fence="0123456789ab" * 2 + "01234567"))
        evaluate("session_review", first=2, lake=lake.uri)
    (run_id,) = lake.frame(RUNS).collect()["run_id"]
    index = RunIndexes(lake).of(run_id)
    for item in item_contents(lake, index, index.samples["sample_hash"].to_list()):
        assert [len(call.messages) for call in item.calls] == [2, 4]
        assert all("0123456789ab" in call.messages[1].content for call in item.calls)
        assert {fact.name: fact.value for fact in item.answers[0].values}["retest_std"].startswith("unknown: nothing")
    before, asked = lake.frame(SCORES).collect(), lake.frame(CALLS).collect().height
    lake.open(SCORES).delete()
    rescore(run_id, lake=lake.uri)
    assert newest_artifact(f"rescore-{run_id}")[1][0]["unanswered"] == 0
    assert lake.frame(SCORES).collect().sort("score_id").equals(before.sort("score_id"))
    evaluate("session_review", first=2, lake=lake.uri)
    assert lake.frame(CALLS).collect().height == 2 * asked, "a scoring under today's mark is another one"
