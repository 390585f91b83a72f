"""Maintain: the upkeep of every table of a lake, with a table in the Prefect UI of what it did."""

import os
from dataclasses import asdict

from prefect import flow
from prefect.artifacts import create_table_artifact

from flows.evaluate import DEFAULT_LAKE
from storage.lake import Lake
from tasks.logs import redact_logs
from tasks.upkeep import maintain as maintain_lake

ARTIFACT = "maintenance"


@flow(name="maintain", persist_result=False)
def maintain(
    lake: str | None = None,
    dry_run: bool = False,
) -> int:
    """Compact, checkpoint and vacuum every table that exists; returns how many there are.

    Runs whose process is gone are marked as failed. Versions pinned by snapshots stay readable. Raises LakeError where
    a table needs help; the others are maintained.

    Args:
        lake: The lake; none means EVALAKE_LAKE or ./lake.
        dry_run: Only say what would be done.
    """
    redact_logs()
    where = Lake(lake or os.environ.get("EVALAKE_LAKE") or DEFAULT_LAKE)
    done = maintain_lake(where, dry_run)
    create_table_artifact(
        [asdict(table) for table in done],
        key=ARTIFACT,
        description=f"Upkeep of {where.uri}{' (dry run: nothing was changed)' if dry_run else ''}",
    )
    return len(done)
