"""The flows maintain, backup and missed, which keep a lake and its schedules in order, with tables in the UI."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.states import Completed
from pydantic import Field

from evalake.admin.check import check_lake
from evalake.admin.maintain import DAY, Missed, missed_runs
from evalake.admin.maintain import maintain as maintain_lake
from evalake.admin.prove import count_outcomes
from evalake.core.errors import EvalakeError
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.suites.registry import all_contracts, because_undeclared, undeclared_tables
from evalake.tasks.runtime.artifacts import emit_missed_alarm
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, flow_inputs, open_lake
from evalake.tasks.runtime.logs import redact_logs

VARIABLE = "EVALAKE_BACKUP"
MADE_UP = ("evaluate", "snapshot")  # a late canary would not measure the judge of that day


@flow(name="maintain", persist_result=False)
def maintain(
    lake: LakeUri = None,
    dry_run: bool = False,
    configuration_file: ConfigurationFile = None,
) -> int:
    """Compact, checkpoint and vacuum every table that exists, and remove expired files; returns the number of tables.

    Marks runs of dead processes as failed. Versions pinned by snapshots stay readable. Raises LakeError, after the
    other tables, where a table fails.

    Args:
        dry_run: Change nothing, and report the changes.
        configuration_file: Instead of ./evalake.toml; its [retention] sets how long files are kept.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    done = maintain_lake(where, configuration.retention, dry_run)
    dry = " (dry run: nothing was changed)" if dry_run else ""
    tables, expired = [asdict(table) for table in done.tables], [asdict(kind) for kind in done.expired]
    create_table_artifact(tables, key="maintenance", description=f"Maintenance of {where.uri}{dry}")
    if done.undeclared:
        get_run_logger().warning(f"not maintained: {because_undeclared(done.undeclared)}")
    if expired:
        create_table_artifact(expired, key="retention", description=f"Older than [retention] allows{dry}")
    return len(tables)


class BackupError(EvalakeError):
    """The check of a lake's copy has findings, so it is not a backup."""


@flow(name="backup", persist_result=False)
def backup(to: LakeUri = None, lake: LakeUri = None) -> State[Any]:
    """Copy the files that the backup lacks, check the whole copy, and create a table of both.

    Raises LakeError where the lake cannot be copied, BackupError where the check of the copy has findings. Without a
    place, nothing is copied, and the run completes as NotConfigured.

    Args:
        to: The folder or URI of the copy; default: EVALAKE_BACKUP of the worker.
    """
    where = open_lake(lake)
    target = to or os.environ.get(VARIABLE)
    if not target:
        return Completed(
            name="NotConfigured", message=f"no backup was made: set {VARIABLE} of the worker to a folder or URI"
        )
    copy = Lake(target)
    done = back_up(where, copy, all_contracts(where))
    described = f"Backup of {where.uri} in {copy.uri}"
    create_table_artifact([asdict(table) for table in done], key="backup", description=described)
    checked = list(check_lake(copy))
    if findings := [finding for table in checked for finding in table.findings]:
        first = findings[0]
        raise BackupError(f"{described} has {len(findings)} findings; the first: {first.table} {first.problem}")
    copied = sum(table.bytes_copied for table in done) / 1e6
    outcomes = count_outcomes([proof for table in checked for proof in table.proofs])
    undeclared = undeclared_tables(copy)
    order = f"not checked: {because_undeclared(undeclared)}; the others in order" if undeclared else "all in order"
    return Completed(message=f"{described}: {len(done)} tables, {copied:.1f} MB new, {order}; {outcomes}")


@flow(name="missed", persist_result=False)
def missed(days: Annotated[int, Field(ge=1, le=31)] = 3, make_up: bool = True) -> State[Any]:
    """List the scheduled runs of the last days that did not start; start missing evaluations and snapshots.

    A day without any run of its schedule is made up once; other missing runs are only listed.

    Args:
        days: The number of days before today.
        make_up: Whether to start missing runs.
    """
    redact_logs()
    today = datetime.now(UTC).date()
    with get_client(sync_client=True) as client:
        flows = {each.id: each.name for each in client.read_flows()}
        missed = [
            (f"{flows[each.deployment.flow_id]}/{each.deployment.name}", each)
            for each in missed_runs(client, today, days)
        ]
    rows = [_deal_with(name, each, make_up) for name, each in missed]
    create_table_artifact(rows, key="missed-runs", description=f"Runs missed in the {days} days before {today}")
    if not rows:
        return Completed(message=f"no run was missed in the {days} days before {today}")
    made_up = sum(row["made_up"] for row in rows)
    return Completed(name="RunsMissed", message=f"{len(rows)} days with missed runs, {made_up} of them made up")


def _deal_with(name: str, each: Missed, make_up: bool) -> dict[str, Any]:
    made_up = make_up and each.came == 0 and name.partition("/")[0] in MADE_UP
    if made_up:
        run_deployment(
            each.deployment.id,
            parameters={DAY: each.day.isoformat()},
            timeout=0,
            as_subflow=False,
            tags=["make-up"],
            idempotency_key=f"make-up/{each.deployment.id}/{each.day}",
        )
    done = "; it is made up now" if made_up else ""
    message = f"{name} was started {each.came} times of {each.expected} on {each.day}{done}"
    emit_missed_alarm(name, each.day, message)
    return {
        "deployment": name,
        "day": each.day.isoformat(),
        "expected": each.expected,
        "came": each.came,
        "made_up": made_up,
    }
