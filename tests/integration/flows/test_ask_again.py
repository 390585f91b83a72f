"""Replies that were withdrawn are asked again by the same run, replace their rows, and old snapshots stay proved."""

from evalake.admin.maintain import ask_again, suspicious
from evalake.admin.prove import Outcome, verify_snapshot
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.flows.workplace import MODEL, Workplace


def test_empty_replies_are_asked_again_once_they_are_withdrawn(work: Workplace) -> None:
    work.server.rule(reply="")
    before = work.run(work.dataset(30))
    assert suspicious(work.lake).rows() == [(before["run_id"], MODEL, "empty", 30)]
    work.server.rule(reply='{"action": "BLOCK", "reason": "as told", "confidence": 0.9}')
    assert work.run(work.dataset(30))["calls_made"] == 0, "an empty reply is a reply"
    assert ask_again(work.lake, "empty")["replies"].to_list() == [30]
    after = work.run(work.dataset(30))
    assert (after["calls_made"], after["calls_from_ledger"]) == (30, 0)
    results = work.rows(RESULTS)
    assert (results.height, results["verdict"].unique().to_list()) == (30, ["BLOCK"])
    assert results["reply_revision"].unique().to_list() == [1]
    assert sorted(work.rows(CALLS)["reply_revision"]) == [0] * 30 + [1] * 30
    rates = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="all")
    values = dict(rates.select("snapshot_id", "value").iter_rows())
    assert (values[before["snapshot_id"]], values[after["snapshot_id"]]) == (0.0, 1.0)
    for run in (before, after):
        assert verify_snapshot(work.lake, run["snapshot_id"]).outcome is Outcome.PROVED
    assert work.run(work.dataset(30))["calls_made"] == 0
