"""The flow maintain: maintains a lake and removes expired reports and results, with tables in the UI."""

from dataclasses import asdict

from prefect import flow
from prefect.artifacts import create_table_artifact

from evalake.admin.maintain import maintain as maintain_lake
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, flow_inputs

ARTIFACT, RETENTION = "maintenance", "retention"


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
    create_table_artifact(tables, key=ARTIFACT, description=f"Maintenance of {where.uri}{dry}")
    if expired:
        create_table_artifact(expired, key=RETENTION, description=f"Older than [retention] allows{dry}")
    return len(tables)
