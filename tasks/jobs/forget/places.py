"""Places outside of the lake that may hold what was forgotten, for the user to look at."""

import os
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from contracts.contract import Contract
from core.output_files import is_run_name
from storage.lake import Lake
from tasks.runtime.artifacts import DEFAULT_REPORTS, reports_folder

ALWAYS = "backups made by other means, copies of reports, the sources of the datasets, Prefect's logs, providers"


def places(runs: Iterable[str] = ()) -> list[str]:
    """Name the places, in words: a backup, the reports of these runs, what Prefect keeps of tasks."""
    named = []
    if backup := os.environ.get("EVALAKE_BACKUP"):
        named.append(f"the backup {backup} (EVALAKE_BACKUP): back up to a new place, and delete this one")
    folders = dict.fromkeys((reports_folder(), Path(DEFAULT_REPORTS)))
    for report in (folder / run for folder in folders for run in sorted(filter(is_run_name, runs))):
        if report.exists():
            named.append(f"{report}: the report of a run with it; delete it, `evalake metrics` has its numbers")
    if (results := _results()).exists():
        named.append(f"{results}: results of Prefect tasks, which of older versions hold replies")
    return [*named, ALWAYS]


def runs_of(lake: Lake, contracts: Iterable[Contract], samples: Iterable[str]) -> set[str]:
    """Find the runs that have an item or a result of these samples."""
    hashes = sorted(samples)
    runs: set[str] = set()
    for contract in contracts:
        if "sample_hash" in contract.column:
            rows = lake.frame(contract).filter(pl.col("sample_hash").is_in(hashes))
            for name in ("run_id", "landed_by_run"):
                if name in contract.column:
                    runs.update(rows.select(name).unique().collect()[name])
    return runs


def _results() -> Path:
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    return Path(os.environ.get("PREFECT_LOCAL_STORAGE_PATH") or home / "storage")
