"""Maintain a lake: lost runs are marked, tables are compacted and vacuumed, and what has expired is removed."""

import logging
from dataclasses import dataclass

from core.configuration import Retention
from core.errors import EvalakeError, OlderLakeError
from storage.ages import lake_time
from storage.lake import Lake
from storage.maintenance import Maintained
from storage.maintenance import maintain as maintain_tables
from storage.migrations import require_current
from suites.registry import all_contracts
from tasks.jobs.retention import Expired, remove_expired
from tasks.runtime.runs import mark_lost

logger = logging.getLogger("evalake.maintain")


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What was done, or as a dry run would be: to each table that exists, and to each kind of thing beside the lake."""

    tables: list[Maintained]
    expired: list[Expired]


def maintain(lake: Lake, policy: Retention, dry_run: bool = False) -> MaintenanceResult:
    """Do what a lake needs from time to time, and remove what the policy keeps no longer.

    With `dry_run` nothing is changed. Raises OlderLakeError where tables are to be migrated first, LakeError where a
    table needs help, the others are maintained; and ServerError where Prefect's part cannot be done.
    """
    try:
        require_current(lake, all_contracts())
    except OlderLakeError:
        raise
    except EvalakeError as error:
        logger.warning("%s", error)  # a damaged table: it is named again once the others are maintained
    now = lake_time(lake, all_contracts())  # before the commits of maintenance
    if not dry_run:
        mark_lost(lake)
    hours = policy.old_versions_days * 24
    tables = maintain_tables(lake, all_contracts(), dry_run=dry_run, retention_hours=hours)
    return MaintenanceResult(tables, remove_expired(policy, dry_run=dry_run, now=now))
