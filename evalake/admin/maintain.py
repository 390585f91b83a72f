"""Maintain a lake: mark lost runs, compact and vacuum tables, remove expired files; find runs that schedules missed."""

import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.settings import get_current_settings

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, RUNS, SNAPSHOTS, WITHDRAWN_CALLS
from evalake.core.configuration import Retention
from evalake.core.errors import EvalakeError, LakeError, OlderLakeError, UsageError
from evalake.core.files import remove_below, require_no_links
from evalake.core.redaction import redact
from evalake.reports.page import DATA, FIGURES, PAGE
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import KEY, replies
from evalake.storage.maintenance import Maintained, lake_time
from evalake.storage.maintenance import maintain as maintain_tables
from evalake.storage.migrations import Migration, pending, require_current
from evalake.storage.migrations import migrate as migrate_tables
from evalake.storage.objects import require_write_access
from evalake.suites.registry import all_contracts, undeclared_tables
from evalake.tasks.runtime.artifacts import reports_folder
from evalake.tasks.runtime.runs import amended, mark_lost, with_lost
from evalake.tasks.runtime.server import require_server, scheduled_times

# Missed runs: the times that schedules promised, compared with the runs that there were.

TAG = "evalake"  # of every deployment in prefect.yaml, and so of their runs
OURS = DeploymentFilter.model_validate({"tags": {"all_": [TAG]}})
DAY = "day"  # the parameter of flows that can be run for another day
PAGE_OF_RUNS = 200  # that a server is asked for at once
MOST_TIMES = 1440  # of one schedule a day: a schedule of every minute


@dataclass(frozen=True, slots=True)
class Missed:
    """A day on which a deployment was started less often than its schedules say."""

    deployment: Any
    day: date
    expected: int
    came: int


def only(deployment: Any) -> DeploymentFilter:
    """Build the filter of one deployment."""
    return DeploymentFilter.model_validate({"id": {"any_": [deployment.id]}})


def missed_runs(client: SyncPrefectClient, today: date, days: int) -> Iterator[Missed]:
    """Yield missed runs of the last `days` days before today, by the schedules that existed then.

    A run that waits for a worker is late, not missed; one that crashed before it began is missed. A day for which a run
    was made up misses nothing.
    """
    dates = [today - timedelta(days=back) for back in range(days, 0, -1)]
    for deployment in client.read_deployments(deployment_filter=OURS):
        runs = list(_runs(client, deployment, _begin(dates[0])))
        made_up = {str(run.parameters.get(DAY)) for run in runs}
        # One that crashed before any of it ran was never submitted; its end has set start_time, too
        began = [run for run in runs if run.state_type is not StateType.CRASHED or run.run_count]
        due = {run.expected_start_time for run in began}
        for day in dates:
            expected = set(_expected(deployment, day))
            if expected - due and day.isoformat() not in made_up:
                yield Missed(deployment, day, len(expected), len(expected & due))


def _expected(deployment: Any, day: date) -> Iterator[datetime]:
    """Yield the times of a day at which a deployment should have been started, from each schedule's creation on."""
    begin, end = _begin(day), _begin(day + timedelta(days=1))
    for each in deployment.schedules:
        cron, since = getattr(each.schedule, "cron", None), max(begin, each.created or begin)
        if cron and each.active and not deployment.paused and since < end:
            yield from scheduled_times(cron, each.schedule.timezone, since, end, MOST_TIMES)


def _runs(client: SyncPrefectClient, deployment: Any, begin: datetime) -> Iterator[FlowRun]:
    """Yield every run of a deployment that was due since `begin`."""
    due = {"expected_start_time": {"after_": begin, "before_": datetime.now(UTC)}}
    offset, page = 0, list[FlowRun]()
    while offset == 0 or len(page) == PAGE_OF_RUNS:
        page = client.read_flow_runs(
            deployment_filter=only(deployment),
            flow_run_filter=FlowRunFilter.model_validate(due),
            limit=PAGE_OF_RUNS,
            offset=offset,
        )
        yield from page
        offset += PAGE_OF_RUNS


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# Retention: what Prefect and reports keep beside the lake, removed once it is older than `[retention]` says.


FLOW_RUNS, RESULTS, REPORTS = "flow runs", "task results", "reports"
_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Expired:
    """The expired things of one kind: removed, or with a dry run found."""

    kept: str  # the kind
    where: str
    older_than_days: int
    removed: int
    files: tuple[str, ...] = ()  # that were or would be removed; of flow runs none, for a server keeps them


def remove_expired(policy: Retention, *, dry_run: bool = False, now: datetime | None = None) -> list[Expired]:
    """Remove things older than the policy allows; returns one line for each kind that it limits.

    Ages are as of `now`, and never beyond this machine's clock. Flow runs need the server that PREFECT_API_URL names;
    without one none is removed, and the line says so. Raises ServerError where it cannot be used, LakeError where a
    file cannot be removed, or a folder on the way is a link.
    """
    now = min(now or datetime.now(UTC), datetime.now(UTC))
    settings = get_current_settings()
    done = []
    if (days := policy.reports_days) is not None:
        reports = list(_old_reports(reports_folder(), now - timedelta(days=days)))
        done.append(_remove(REPORTS, reports_folder(), days, reports, dry_run))
    if (days := policy.results_days) is not None:
        storage = Path(settings.results.local_storage_path)
        results = [[file] for file in _old_results(storage, now - timedelta(days=days), now)]
        done.append(_remove(RESULTS, storage, days, results, dry_run))
    if (days := policy.flow_runs_days) is not None:
        where, removed = "no server, because PREFECT_API_URL names none", 0
        if settings.api.url:
            require_server()
            with get_client(sync_client=True) as client:
                removed = _remove_flow_runs(client, now - timedelta(days=days), dry_run)
            where = str(redact(settings.api.url))
        done.append(Expired(FLOW_RUNS, where, days, removed))
    return done


def _old_reports(folder: Path, before: datetime) -> Iterator[list[Path]]:
    """Yield the files of each old report; nothing else that lies in the folder. Raises LakeError for links there."""
    for page in sorted(folder.glob(f"*/{PAGE}")):
        if _written(page) < before:
            require_no_links(folder, below=False)
            require_no_links(page.parent)
            yield [page, page.with_name(DATA), *sorted((page.parent / FIGURES).glob("*"))]


def _old_results(storage: Path, before: datetime, now: datetime) -> Iterator[Path]:
    """Yield the old results of batches of calls that Prefect itself takes for expired."""
    for file in sorted(storage.glob("*")):
        if _CONTENT_HASH.fullmatch(file.name) and _written(file) < before and _has_expired(file, now):
            yield file


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)


def _has_expired(file: Path, now: datetime) -> bool:
    try:
        return datetime.fromisoformat(json.loads(file.read_bytes())["metadata"]["expiration"]) < now
    except (ValueError, KeyError, TypeError):
        return False  # no result of ours


def _remove(kind: str, root: Path, days: int, files_of_each: Sequence[Sequence[Path]], dry_run: bool) -> Expired:
    """Remove files below a folder, and folders that are empty then."""
    names = [str(file.relative_to(root)) for files in files_of_each for file in files if file.exists()]
    folders = {file.parent for files in files_of_each if len(files) > 1 for file in files}
    try:
        if names and not dry_run:
            remove_below(root.resolve(), names)
        for folder in () if dry_run else sorted(folders, reverse=True):
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise LakeError(f"cannot remove {error.filename} ({error.strerror}): remove it yourself") from error
    return Expired(kind, str(root), days, len(files_of_each), tuple(names))


def _remove_flow_runs(client: SyncPrefectClient, before: datetime, dry_run: bool) -> int:
    """Delete ended flow runs with their task runs, logs and artifacts; those that wait for a person have not ended."""
    ours = {"tags": {"all_": [TAG]}, "end_time": {"before_": before, "is_null_": False}}
    ended = FlowRunFilter.model_validate(ours)
    count = 0
    while runs := client.read_flow_runs(flow_run_filter=ended, limit=PAGE_OF_RUNS, offset=count if dry_run else 0):
        for run in () if dry_run else runs:
            of_run = ArtifactFilter.model_validate({"flow_run_id": {"any_": [run.id]}})
            for artifact in client.read_artifacts(artifact_filter=of_run):
                client.delete_artifact(artifact.id)
            client.delete_flow_run(run.id)
        count += len(runs)
    return count


logger = logging.getLogger("evalake.maintain")


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The changes, done or with a dry run planned: of each table, and of each kind of thing beside the lake.

    Tables that are `undeclared` by the suites here are left as they are.
    """

    tables: list[Maintained]
    expired: list[Expired]
    undeclared: tuple[str, ...] = ()


def maintain(lake: Lake, policy: Retention, dry_run: bool = False) -> MaintenanceResult:
    """Mark lost runs, maintain every table, and remove expired things by the policy.

    With `dry_run` nothing is changed. Raises OlderLakeError where tables are to be migrated first, LakeError where the
    lake is not writable, or a table needs help (the others are maintained); and ServerError where Prefect's part cannot
    be done.
    """
    try:
        require_current(lake, all_contracts(lake))
    except OlderLakeError:
        raise
    except EvalakeError as error:
        logger.warning("%s", error)  # a damaged table: it is named again once the others are maintained
    now = lake_time(lake, all_contracts(lake))  # before the commits of maintenance
    if not dry_run:
        require_write_access(lake)
        mark_lost(lake)
    hours = policy.old_versions_days * 24
    tables = maintain_tables(lake, all_contracts(lake), dry_run=dry_run, retention_hours=hours)
    return MaintenanceResult(tables, remove_expired(policy, dry_run=dry_run, now=now), undeclared_tables(lake))


# Suspicious replies: those of the ledger that look like a failure that was kept as a reply, and their withdrawal.


_EMPTY = pl.col("response").fill_null("").str.strip_chars() == ""
_USED = pl.any_horizontal(pl.col("input_tokens", "output_tokens", "reasoning_tokens") > 0).fill_null(False)
_ENDED_BY_RULE = (
    pl.col("finish_reason").fill_null("").str.to_lowercase().is_in(["content_filter", "length", "max_tokens"])
)
_CALLS_TOOL = pl.col("finish_reason").is_in(["tool_calls", "tool_use", "function_call"])

# The first that holds is the reply's kind
_KINDS = {
    "error-finish": pl.col("finish_reason") == "error",
    "tool-call": _EMPTY & _CALLS_TOOL,
    "empty": _EMPTY & _USED & ~_ENDED_BY_RULE.fill_null(False),
    "empty-without-usage": _EMPTY & ~_USED & ~_ENDED_BY_RULE.fill_null(False),
}
KINDS = tuple(_KINDS)


def suspicious(lake: Lake) -> pl.DataFrame:
    """Count the suspicious replies by the run that asked, model and kind; those that were withdrawn are left out."""
    counted = _found(lake).group_by("run_id", "model", "kind").agg(replies=pl.len().cast(pl.Int64))
    return counted.sort("replies", "run_id", "model", "kind", descending=[True, False, False, False])


def ask_again(
    lake: Lake, kind: str, run_id: str | None = None, model: str | None = None, *, dry_run: bool = False
) -> pl.DataFrame:
    """Withdraw the suspicious replies of a kind, so that the next run asks for them again; returns their counts.

    The replies stay in the ledger. Raises UsageError for a kind that there is not.
    """
    if kind not in KINDS:
        raise UsageError(f"no suspicious replies are of the kind {kind!r}: choose one of {', '.join(KINDS)}")
    chosen = {"kind": kind, "run_id": run_id, "model": model}
    rows = _found(lake).filter(**{name: value for name, value in chosen.items() if value is not None})
    if rows.height and not dry_run:
        withdrawn = rows.drop("run_id", "ledger_version").with_columns(withdrawn_at=pl.lit(datetime.now(UTC)))
        land(lake, WITHDRAWN_CALLS, conform(withdrawn, WITHDRAWN_CALLS))
    return rows.group_by("run_id", "model", "kind").agg(replies=pl.len().cast(pl.Int64)).sort("run_id", "model")


def _found(lake: Lake) -> pl.DataFrame:
    """Read the suspicious replies that stand: key, revision, model, run and kind."""
    calls, identity = lake.frame(CALLS), [*KEY, "reply_revision"]
    kind = pl.coalesce(pl.when(holds).then(pl.lit(name)) for name, holds in _KINDS.items())
    asked = calls.filter(pl.col("origin") == "call").with_columns(kind=kind).filter(pl.col("kind").is_not_null())
    found = asked.select(*identity, "ledger_version", "model", "run_id", "kind").collect().lazy()
    same = calls.select(*identity, "ledger_version").join(found.select(KEY).unique(), on=KEY, how="semi")
    standing = replies(same).join(lake.frame(WITHDRAWN_CALLS), on=identity, how="anti")
    return found.join(standing, on=[*identity, "ledger_version"], how="semi").collect()


# Migrate: bring a lake of an older evalake to this one's schema, while nothing writes to it.


def migrate(lake: Lake, dry_run: bool = False) -> list[Migration]:
    """Migrate every table that needs it; returns the changes, with `dry_run` only planned.

    May be cut off and run again at any point. Raises LakeError while a run is under way, NewerLakeError where a table
    is of a newer evalake.
    """
    contracts = all_contracts(lake)
    needed = pending(lake, contracts)
    if dry_run:
        return needed
    if needed:
        require_idle(lake, "migrate")
    # Also where no schema is behind: one that was cut off after its last schema has left out constraints.
    done = migrate_tables(lake, contracts)
    if needed:
        name_newest_snapshots(lake)
    return done


def name_newest_snapshots(lake: Lake) -> None:
    """Set the snapshot of runs that an older evalake measured again: it left their rows as they were."""
    newest = lake.frame(SNAPSHOTS).sort("created_at").group_by("run_id").agg(newest=pl.col("snapshot_id").last())
    rows = lake.frame(RUNS).join(newest, on="run_id").filter(pl.col("snapshot_id").ne_missing(pl.col("newest")))
    for run_id, snapshot_id in rows.select("run_id", "newest").collect().iter_rows():
        amended(lake, run_id, snapshot_id=snapshot_id)


def require_idle(lake: Lake, to_do: str) -> None:
    """Raise LakeError while a run of the lake is under way."""
    version = lake.version(RUNS)
    if version is None:
        return
    rows = with_lost(lake.frame(RUNS, version)).filter(pl.col("state") == "running").collect()
    if rows.height:
        names = ", ".join(rows["run_id"].sort().to_list()[:3])
        raise LakeError(
            f"the lake {lake.uri} cannot {to_do} while a run is under way ({names}): wait for its end, or cancel it; "
            "one whose process is gone counts as lost five minutes later"
        )
