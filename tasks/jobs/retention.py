"""Retention: what Prefect and reports keep beside the lake, removed once it is older than `[retention]` says.

Only what is evalake's goes: flow runs with the tag of its deployments, results under the content hash of a batch, and
folders of reports.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.settings import get_current_settings

from core.configuration import Retention
from core.errors import LakeError
from core.redaction import redact
from core.removal import remove_below, require_no_links
from reports.page import DATA, PAGE
from tasks.jobs.missed import TAG
from tasks.runtime.artifacts import reports_folder
from tasks.runtime.server import require_server

FLOW_RUNS, RESULTS, REPORTS = "flow runs", "task results", "reports"
PAGE_OF_RUNS = 100
_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Expired:
    """How much of one kind was older than the policy allows, and was removed or, as a dry run, would be."""

    kept: str  # the kind
    where: str
    older_than_days: int
    removed: int
    files: tuple[str, ...] = ()  # that were or would be removed; of flow runs none, for a server keeps them


def remove_expired(policy: Retention, *, dry_run: bool = False, now: datetime | None = None) -> list[Expired]:
    """Remove what is older than the policy says; one line for each kind that it limits.

    Ages are as of `now`, and never beyond this machine's clock. Flow runs need the server that PREFECT_API_URL names;
    without one they are left out. Raises ServerError where it cannot be used, LakeError where a file cannot be removed,
    or a folder on the way is a link.
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
    if (days := policy.flow_runs_days) is not None and settings.api.url:
        require_server()
        with get_client(sync_client=True) as client:
            removed = _remove_flow_runs(client, now - timedelta(days=days), dry_run)
        done.append(Expired(FLOW_RUNS, str(redact(settings.api.url)), days, removed))
    return done


def _old_reports(folder: Path, before: datetime) -> Iterator[list[Path]]:
    """Yield the files of each old report; nothing else that lies in the folder. Raises LakeError for links there."""
    for page in sorted(folder.glob(f"*/{PAGE}")):
        if _written(page) < before:
            require_no_links(folder, below=False)
            require_no_links(page.parent)
            yield [page, page.with_name(DATA)]


def _old_results(storage: Path, before: datetime, now: datetime) -> Iterator[Path]:
    """Yield the old results of batches of calls that Prefect itself takes for expired."""
    for file in sorted(storage.glob("*")):
        if _CONTENT_HASH.fullmatch(file.name) and _written(file) < before and _has_expired(file, now):
            yield file


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)


def _has_expired(file: Path, now: datetime) -> bool:
    try:
        expiration = json.loads(file.read_bytes())["metadata"]["expiration"]
        return datetime.fromisoformat(expiration) < now
    except (ValueError, KeyError, TypeError):
        return False  # no result of ours


def _remove(kind: str, root: Path, days: int, files_of_each: Sequence[Sequence[Path]], dry_run: bool) -> Expired:
    """Remove files below a folder, and folders that are empty then."""
    names = [str(file.relative_to(root)) for files in files_of_each for file in files if file.exists()]
    try:
        if names and not dry_run:
            remove_below(root.resolve(), names)
        for files in () if dry_run else files_of_each:
            folder = files[0].parent
            if len(files) > 1 and not any(folder.iterdir()):
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
            _delete(client, run)
        count += len(runs)
    return count


def _delete(client: SyncPrefectClient, run: Any) -> None:
    of_run = ArtifactFilter.model_validate({"flow_run_id": {"any_": [run.id]}})
    for artifact in client.read_artifacts(artifact_filter=of_run):
        client.delete_artifact(artifact.id)
    client.delete_flow_run(run.id)
