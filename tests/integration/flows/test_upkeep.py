"""Upkeep: backups, maintenance, retention, missed days and lost runs."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from deltalake import write_deltalake
from prefect import Flow, flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterId,
)
from prefect.context import FlowRunContext
from prefect.exceptions import ParameterTypeError
from prefect.settings import PREFECT_API_URL, PREFECT_LOCAL_STORAGE_PATH, temporary_settings

from evalake.admin.maintain import Missed, remove_expired
from evalake.contracts.tables import CALLS, RUNS
from evalake.core.configuration import Retention, read_configuration
from evalake.core.errors import ConfigurationError, UsageError
from evalake.flows.check import check
from evalake.flows.judges import canary
from evalake.flows.maintain import VARIABLE, BackupError, backup, maintain, missed
from evalake.flows.snapshot import snapshot
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.runs import Tally
from tests.integration.cli.command import evalake_here
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported
from tests.integration.flows.lost import LONG_AGO, begin, states
from tests.integration.flows.workplace import Workplace
from tests.integration.storage.rows import call

# The flow `backup`: the lake is copied and the copy checked; a copy that is not in order is no backup.


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of one table, for each takes time to be checked."""
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(0), call(1)])
    return lake


def test_a_lake_is_copied_whole_and_only_what_is_new_the_next_time(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backup"))
    state = backup(to=copy.uri, lake=lake.uri, return_state=True)
    described = f"Backup of {lake.uri} in {copy.uri}"
    assert (state.message or "").startswith(f"{described}: 1 tables, ")
    assert "all in order" in (state.message or "")
    assert copy.frame(CALLS).collect().equals(lake.frame(CALLS).collect())
    description, (first,) = newest_artifact("backup")
    assert (description, first["table"], first["files_there"]) == (described, "calls", 0)

    ledger.append(lake, [call(2)])
    backup(to=copy.uri, lake=lake.uri)
    _, (second,) = newest_artifact("backup")
    assert (second["files_there"], second["files_copied"]) == (first["files_copied"], 2)  # of data and of the log
    assert copy.frame(CALLS).collect().height == 3


def test_a_copy_whose_files_cannot_be_read_is_no_backup(lake: Lake, tmp_path: Path) -> None:
    copy = Lake(str(tmp_path / "backup"))
    backup(to=copy.uri, lake=lake.uri)
    (file,) = (Path(uri) for uri in copy.open(CALLS).file_uris())
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(BackupError, match=r"has \d+ findings; the first: calls "):
        backup(to=copy.uri, lake=lake.uri)


def test_tables_that_no_suite_declares_are_copied_and_called_unchecked(lake: Lake, tmp_path: Path) -> None:
    write_deltalake(f"{lake.uri}/toy_results", pl.DataFrame({"toy_id": ["a"]}).to_arrow())
    state = backup(to=str(tmp_path / "backup"), lake=lake.uri, return_state=True)
    assert "2 tables, " in (state.message or "")
    assert "not checked: toy_results, because no suite here declares it; the others in order" in (state.message or "")
    checked = check(lake=lake.uri, return_state=True)
    assert "toy_results: warning: no suite here declares it" in (checked.message or "")


def test_the_worker_may_name_the_place_and_without_one_nothing_is_copied(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    state = backup(lake=lake.uri, return_state=True)
    assert state.name == "NotConfigured"
    assert state.message == f"no backup was made: set {VARIABLE} of the worker to a folder or URI"
    monkeypatch.setenv(VARIABLE, lake.uri)
    with pytest.raises(UsageError, match="cannot be the lake itself"):
        backup(lake=lake.uri)


# The flow `maintain`: tables, lost runs and what has expired; a dry run only says what would be done.

OLD = (datetime.now(UTC) - timedelta(days=40)).timestamp()


def test_the_maintain_flow_removes_old_reports_and_results_and_nothing_else(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.run(work.dataset(1))
    monkeypatch.setenv("EVALAKE_REPORTS", str(work.folder / "reports"))
    storage = Path(PREFECT_LOCAL_STORAGE_PATH.value())
    result, stranger = storage / ("a" * 64), storage / ("b" * 64)
    result.write_text(json.dumps({"metadata": {"expiration": "2026-01-01T00:00:00Z"}, "result": "3"}))
    stranger.write_text("somebody's own file")
    old, young = (work.folder / "reports" / name / "report.html" for name in ("old", "young"))
    notes = old.with_name("notes.txt")
    for file in (old, old.with_name("report.json"), notes, young):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("what a model was asked")
    for file in (old, result, stranger):
        os.utime(file, (OLD, OLD))
    policy = "[retention]\nreports_days = 30\nresults_days = 2\n"
    work.configuration.write_text(policy)

    maintain(lake=work.lake.uri, dry_run=True, configuration_file=str(work.configuration))
    assert (old.exists(), result.exists()) == (True, True)
    maintain(lake=work.lake.uri, configuration_file=str(work.configuration))

    assert (old.exists(), old.with_name("report.json").exists(), result.exists()) == (False, False, False)
    assert (notes.exists(), young.exists(), stranger.exists()) == (True, True, True)


def test_lost_runs_are_marked_unless_it_only_says_what_it_would_do(work: Workplace) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    maintain(work.lake.uri, dry_run=True)
    assert states(work) == {"lost": "running"}
    maintain(work.lake.uri)
    assert states(work) == {"lost": "failed"}


def test_every_table_is_maintained_and_shown_and_keeps_its_rows(imported: Imported) -> None:
    before = imported.lake.frame(RESULTS).collect()
    count = maintain(imported.lake.uri)
    description, rows = newest_artifact("maintenance")
    assert description == f"Maintenance of {imported.lake.uri}"
    assert count == len(rows)
    assert {row["table"] for row in rows} >= {"runs", "calls", RESULTS.table}
    assert imported.lake.frame(RESULTS).collect().sort("sample_id").equals(before.sort("sample_id"))
    maintain(imported.lake.uri, dry_run=True)
    assert newest_artifact("maintenance")[0].endswith(" (dry run: nothing was changed)")


def test_a_configuration_that_is_not_there_is_named_before_anything_is_done(imported: Imported) -> None:
    version = imported.lake.version(RUNS)
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        maintain(imported.lake.uri, configuration_file="nowhere.toml")
    assert imported.lake.version(RUNS) == version


# What is older than [retention] allows goes with maintenance, on a real server; what is younger or not ours stays.

LATER = datetime.now(UTC) + timedelta(days=40)  # what ends now is old by then


@flow(persist_result=False)
def ours() -> UUID:
    """A flow run with a log line and an artifact."""
    get_run_logger().info("a line")
    create_markdown_artifact("a summary")
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    return context.flow_run.id


def kept(run: UUID) -> tuple[bool, int]:
    """Whether the server has a flow run, and how many artifacts of it."""
    with get_client(sync_client=True) as client:
        of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run]))
        found = client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
        return bool(found), len(client.read_artifacts(artifact_filter=of_run))


class MuchLater(datetime):
    """A clock that has gone on; a time that is only said to be later counts as the clock has it."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "MuchLater":
        return cls.fromtimestamp(LATER.timestamp(), tz)


def test_flow_runs_of_ours_go_with_their_artifacts_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, others = ours(), ours()
    with get_client(sync_client=True) as client:
        client.update_flow_run(mine, tags=["evalake", "command_guard"])
    policy = Retention(flow_runs_days=30)

    (young,) = [kind.removed for kind in remove_expired(policy)]
    monkeypatch.setattr("evalake.admin.maintain.datetime", MuchLater)
    (planned,) = [kind.removed for kind in remove_expired(policy, dry_run=True)]
    assert (young, kept(mine)) == (0, (True, 1))

    (removed,) = [kind.removed for kind in remove_expired(policy)]

    assert removed == planned >= 1
    assert (kept(mine), kept(others)) == ((False, 0), (True, 1))
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        (nowhere,) = remove_expired(policy)
    assert (nowhere.removed, nowhere.where) == (0, "no server, because PREFECT_API_URL names none")


def test_a_working_directory_may_not_have_things_deleted(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.configuration.write_text("[retention]\nreports_days = 1\n")
    monkeypatch.chdir(work.folder)
    with pytest.raises(ConfigurationError, match=r"may not set .*reports_days"):
        read_configuration()


# The flow `missed`: what can be made up is started once for its day, and anything else is only said.
#
# The days that schedules promised lie in the past, where no schedule of a test was; tests/e2e moves one there.

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)


@dataclass
class Schedules:
    """Deployments of this test, and the days that they are to have missed."""

    missed: list[Missed]

    def add(self, flow: Flow[..., Any], came: int = 0, day: date = YESTERDAY) -> UUID:
        """Deploy a flow that was started less than twice on a day."""
        with get_client(sync_client=True) as client:
            flow_id = client.create_flow(flow)
            deployed = client.create_deployment(flow_id, name=f"of-{len(self.missed)}-{day}", paused=True)
        known = SimpleNamespace(id=deployed, flow_id=flow_id, name="nightly")
        self.missed.append(Missed(known, day, 2, came))
        return deployed


@pytest.fixture
def schedules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedules]:
    known = Schedules([])
    monkeypatch.setattr("evalake.flows.maintain.missed_runs", lambda client, today, days: known.missed)
    yield known
    with get_client(sync_client=True) as client:
        for each in known.missed:
            client.delete_deployment(each.deployment.id)


def started(deployment: UUID) -> list[Any]:
    """The runs of a deployment."""
    of_it = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(deployment_filter=of_it)


def test_a_day_that_did_not_come_at_all_is_made_up_once_with_its_day(schedules: Schedules) -> None:
    deployment = schedules.add(snapshot)
    for _ in range(2):
        state = missed(return_state=True)
        assert (state.name, state.message) == ("RunsMissed", "1 days with missed runs, 1 of them made up")
    (run,) = started(deployment)
    assert run.parameters["day"] == YESTERDAY.isoformat()
    assert "make-up" in run.tags
    description, (row,) = newest_artifact("missed-runs")
    assert description.startswith("Runs missed in the 3 days before ")
    assert row == {
        "deployment": "snapshot/nightly", "day": YESTERDAY.isoformat(), "expected": 2, "came": 0, "made_up": True
    }  # fmt: skip


def test_what_means_something_else_a_day_later_or_came_in_part_is_only_said(schedules: Schedules) -> None:
    deployments = [schedules.add(canary), schedules.add(snapshot, came=1)]
    assert missed(return_state=True).message == "2 days with missed runs, 0 of them made up"
    assert [started(deployment) for deployment in deployments] == [[], []]
    assert [row["made_up"] for row in newest_artifact("missed-runs")[1]] == [False, False]


def test_nothing_is_started_where_that_is_not_wanted(schedules: Schedules) -> None:
    deployment = schedules.add(snapshot)
    assert missed(make_up=False, return_state=True).name == "RunsMissed"
    assert started(deployment) == []


def test_where_nothing_was_missed_it_says_so(schedules: Schedules) -> None:
    state = missed(days=5, return_state=True)
    assert state.is_completed()
    assert (state.message or "").startswith("no run was missed in the 5 days before ")


@pytest.mark.parametrize("days", [0, 32])
def test_a_month_at_most_is_looked_at(days: int) -> None:
    with pytest.raises(ParameterTypeError, match="days"):
        missed(days=days)


# Runs whose process is gone: shown as lost, failed by the next run or maintenance, alive again if they are.


def test_the_next_run_marks_what_is_lost_and_nothing_else(work: Workplace) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    begin(work, "alive")
    done = work.run(work.dataset(1))
    assert states(work) == {"lost": "failed", "alive": "running", done["run_id"]: "completed"}
    row = work.rows(RUNS).row(by_predicate=pl.col("run_id") == "lost", named=True)
    assert row["ended_at"] == LONG_AGO
    assert row["message"].startswith("lost: no heartbeat after ")


def test_a_lost_run_has_paid_what_the_ledger_says(work: Workplace) -> None:
    done = work.run(work.dataset(3))
    told = work.rows(RUNS).row(0, named=True)
    gone = begin(work, done["run_id"], silent_since=LONG_AGO)  # as its row was before anything came back
    begin(work, "asked nothing", silent_since=LONG_AGO)
    runs.mark_lost(work.lake)
    rows = {row["run_id"]: row for row in work.rows(RUNS).iter_rows(named=True)}
    names = ("calls_made", "input_tokens", "output_tokens", "cost_usd")
    assert told["calls_made"] == 3
    assert {name: rows[gone.run_id][name] for name in names} == {name: told[name] for name in names}
    assert {name: rows["asked nothing"][name] for name in names} == dict.fromkeys(names, 0)


def test_what_a_lost_run_has_paid_is_unknown_where_the_ledger_is_gone(work: Workplace) -> None:
    done = work.run(work.dataset(3))
    begin(work, done["run_id"], silent_since=LONG_AGO)
    for file in work.lake.open(CALLS).file_uris():
        Path(file).unlink()
    runs.mark_lost(work.lake)
    (row,) = work.rows(RUNS).iter_rows(named=True)
    assert (row["state"], row["cost_usd"], row["input_tokens"]) == ("failed", None, None)


def test_they_are_listed_as_lost_before_anybody_marks_them(work: Workplace, tmp_path: Path) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    begin(work, "alive")
    listed = json.loads(evalake_here("runs", "--lake", work.lake.uri, "--format", "json", folder=tmp_path).stdout)
    assert {row["run_id"]: row["state"] for row in listed} == {"lost": "lost", "alive": "running"}


def test_a_run_tells_that_it_is_alive_and_how_far_it_is(work: Workplace) -> None:
    run = begin(work, "slow", silent_since=LONG_AGO)
    runs.mark_lost(work.lake)
    assert states(work) == {"slow": "failed"}
    asked = threading.Event()

    def tally() -> Tally:
        asked.set()
        return Tally(calls_made=7)

    with runs.alive(work.lake, run, tally, every_seconds=0.01):
        assert asked.wait(600)
    (row,) = work.rows(RUNS).iter_rows(named=True)
    assert (row["state"], row["calls_made"], row["ended_at"]) == ("running", 7, None)
    assert row["alive_at"] > LONG_AGO
