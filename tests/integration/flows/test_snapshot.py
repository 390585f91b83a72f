"""The flow `snapshot`: the newest run of every suite is measured again; one that cannot be does not keep others."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.flows.snapshot import SnapshotError, snapshot
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported


def snapshots(lake: Lake) -> dict[str, set[str]]:
    """The ids of all snapshots by suite."""
    rows = lake.frame(SNAPSHOTS).collect()
    return {suite: {*ids} for suite, ids in rows.group_by("suite").agg("snapshot_id").iter_rows()}


def test_what_has_not_changed_has_the_snapshot_that_it_had(imported: Imported) -> None:
    done = snapshot(lake=imported.lake.uri)
    before, values = snapshots(imported.lake), imported.lake.frame(METRIC_SNAPSHOTS).collect()
    assert [suite for suite, snapshot_id in done.items() if snapshot_id in before[suite]] == [
        "command_guard", "solidity_audit"
    ]  # fmt: skip
    assert snapshot(lake=imported.lake.uri) == done
    assert snapshots(imported.lake) == before
    assert imported.lake.frame(METRIC_SNAPSHOTS).collect().height == values.height
    description, rows = newest_artifact("snapshot-command-guard")
    assert description == (
        f"Headline metrics of command_guard with 95 % intervals, run {imported.guard}, "
        f"snapshot {done['command_guard'][:12]}. `evalake view` shows its pages."
    )
    assert rows[0]["model"] == "openai/gpt-4o-mini"


def test_runs_count_up_to_the_day(imported_once: Imported) -> None:
    begun = imported_once.lake.frame(RUNS).select(pl.col("started_at").min()).collect().item()
    assert snapshot(day=begun.date() - timedelta(days=1), lake=imported_once.lake.uri) == {}


def test_what_a_run_lacks_is_missing_from_its_later_snapshots_too(imported: Imported) -> None:
    run = imported.lake.frame(RUNS).filter(pl.col("run_id") == imported.guard).collect()
    told = {"state": "incomplete", "message": "2 items have no answer"}
    imported.lake.open(RUNS).delete()
    land(imported.lake, RUNS, run.with_columns(**{name: pl.lit(value) for name, value in told.items()}))
    snapshot_id = snapshot(lake=imported.lake.uri)["command_guard"]
    row = imported.lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot_id).collect()
    assert any(told["message"] in warning for warning in row["warnings"].item())


def test_a_suite_that_cannot_be_measured_is_named_and_the_others_are_measured(imported: Imported) -> None:
    imported.lake.open(SNAPSHOTS).delete()
    for file in imported.lake.open(RESULTS).file_uris():
        Path(file).unlink()
    with pytest.raises(SnapshotError, match="1 suites could not be measured: command_guard: No such file"):
        snapshot(lake=imported.lake.uri)
    assert snapshots(imported.lake).keys() == {"solidity_audit"}


def test_a_lake_without_runs_has_nothing_to_measure(tmp_path: Path) -> None:
    assert snapshot(lake=str(tmp_path / "lake")) == {}
