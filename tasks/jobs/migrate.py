"""Migrate: bring a lake of an older evalake to this one's schema, while nothing writes to it."""

import polars as pl

from contracts.tables import RUNS
from core.errors import LakeError
from storage.lake import Lake
from storage.migrations import Migration, pending
from storage.migrations import migrate as migrate_tables
from suites.registry import all_contracts
from tasks.runtime.runs import with_lost


def migrate(lake: Lake, dry_run: bool = False) -> list[Migration]:
    """Migrate every table that needs it, and return what was done, or with `dry_run` what would be.

    May be cut off and run again at any point. Raises LakeError while a run is under way, NewerLakeError where a table
    is of a newer evalake.
    """
    contracts = all_contracts()
    needed = pending(lake, contracts)
    if dry_run:
        return needed
    if needed:
        require_idle(lake, "migrate")
    # Also where no schema is behind: one that was cut off after its last schema has left out constraints.
    return migrate_tables(lake, contracts)


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
