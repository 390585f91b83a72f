"""Upkeep of a lake: lost runs are marked, every table is compacted, checkpointed and vacuumed."""

from storage.lake import Lake
from storage.upkeep import Maintained
from storage.upkeep import maintain as maintain_tables
from suites.registry import all_contracts
from tasks.runs import mark_lost


def maintain(lake: Lake, dry_run: bool = False) -> list[Maintained]:
    """Do what a lake needs from time to time, and say what was done to each table that exists.

    With `dry_run` nothing is changed. Raises LakeError where a table needs help; the others are maintained.
    """
    if not dry_run:
        mark_lost(lake)
    return maintain_tables(lake, all_contracts(), dry_run=dry_run)
