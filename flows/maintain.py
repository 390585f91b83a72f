"""Maintain a lake and what is kept beside it, with tables in the Prefect UI of what it did."""

from dataclasses import asdict

from prefect import flow
from prefect.artifacts import create_table_artifact

from evalake.admin.maintain import maintain as maintain_lake
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, opened

ARTIFACT, RETENTION = "maintenance", "retention"


@flow(name="maintain", persist_result=False)
def maintain(
    lake: LakeUri = None,
    dry_run: bool = False,
    configuration_file: ConfigurationFile = None,
) -> int:
    """Compact, checkpoint and vacuum every table that exists; returns how many there are. Remove what has expired.

    Runs whose process is gone are marked as failed. Versions pinned by snapshots stay readable. Raises LakeError where
    a table needs help; the others are maintained.

    Args:
        dry_run: Only say what would be done.
        configuration_file: In place of ./evalake.toml; its [retention] says what is kept for how long.
    """
    where, configuration = opened(lake, configuration_file)
    done = maintain_lake(where, configuration.retention, dry_run)
    dry = " (dry run: nothing was changed)" if dry_run else ""
    tables, expired = [asdict(table) for table in done.tables], [asdict(kind) for kind in done.expired]
    create_table_artifact(tables, key=ARTIFACT, description=f"Maintenance of {where.uri}{dry}")
    if expired:
        create_table_artifact(expired, key=RETENTION, description=f"Older than [retention] allows{dry}")
    return len(tables)
