"""Forget: remove a person's or a customer's data from a lake, for good, while nothing writes to it.

What is to go is found first and kept, by hash, in the table `forgotten`; then it is removed table after table. So what
was cut off is taken up by the next call, and what was forgotten is not imported or asked about again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from contracts.compile.arrow import conform
from contracts.contract import Contract
from contracts.tables import FORGOTTEN, SAMPLES
from storage.forget import erase, files_to_go
from storage.lake import Lake
from storage.landing import land
from storage.migrations import require_current
from storage.removal import require_no_links
from suites.registry import all_contracts
from tasks.jobs.forget.choice import choose, nothing_chosen
from tasks.jobs.forget.places import places, runs_of
from tasks.jobs.forget.rows import Hashes, column_of, count_rows, rows_of
from tasks.jobs.migrate import require_idle


@dataclass(frozen=True)
class Forgotten:
    """What was removed, or with a dry run would be."""

    samples: set[str]
    rows: dict[str, int]  # by table
    shared_calls: int  # prompts that stay, for kept samples have the same
    orphan_calls: int  # prompts that no result names any more, found by the samples' text in them
    look_at: list[str]  # places outside of the lake that may hold it
    files: tuple[str, ...] = ()  # with a dry run, those that would be removed, by their path within the lake


def forget(
    lake: Lake,
    *,
    sample: str | None = None,
    session: str | None = None,
    dataset: str | None = None,
    dry_run: bool = False,
) -> Forgotten:
    """Remove samples and all that was made of them; exactly one of the three says which.

    Goes on with what an earlier call was cut off from, too. Raises UsageError where the lake has nothing of that name,
    LakeError while a run is under way, or where the folder of a table holds links.
    """
    choice = choose(lake, sample, session, dataset)
    require_idle(lake, "forget")
    contracts = all_contracts()
    require_current(lake, contracts)
    going = rows_of(lake, contracts, choice)
    wanted = going.rows
    for table, hashes in _unfinished(lake).items():
        wanted.setdefault(table, set()).update(hashes)
    if not any(wanted.values()):
        raise nothing_chosen(lake, choice)
    samples = wanted.get(SAMPLES.table, set())
    look_at = places(runs_of(lake, contracts, samples))
    counts = count_rows(lake, contracts, wanted)
    tables = list(_tables(lake, contracts, wanted))
    for table, _, _ in tables:  # before anything is removed
        require_no_links(lake, table)
    files: tuple[str, ...] = ()
    if dry_run:
        files = tuple(f"{table[0]}/{path}" for table in tables for path in files_to_go(lake, *table))
    else:
        _remove(lake, contracts, wanted)
    return Forgotten(samples, counts, going.shared_calls, going.orphan_calls, look_at, files)


def _tables(lake: Lake, contracts: Iterable[Contract], wanted: Hashes) -> Iterator[tuple[str, str, set[str]]]:
    """Yield name, column and values of every table that rows are removed from, former ones before the present."""
    for contract in contracts:
        if going := wanted.get(contract.table):
            column = column_of(contract)
            for former in contract.former_tables:
                if (old := lake.find(former)) and column in {field.name for field in old.schema().fields}:
                    yield former, column, going
            yield contract.table, column, going


def _remove(lake: Lake, contracts: Iterable[Contract], wanted: Hashes) -> None:
    now = datetime.now(UTC)
    _note(lake, ((table, each, now, None) for table, hashes in wanted.items() for each in hashes))
    present = {contract.table for contract in contracts}
    for table, column, going in list(_tables(lake, contracts, wanted)):
        version = erase(lake, table, column, going)
        if table in present:
            _note(lake, ((table, each, now, version) for each in going))


def _unfinished(lake: Lake) -> Hashes:
    rows = lake.frame(FORGOTTEN).filter(pl.col("first_version").is_null()).select("table_name", "row_hash").collect()
    return {table: set(of_table["row_hash"]) for (table,), of_table in rows.group_by("table_name")}


def _note(lake: Lake, rows: Iterable[tuple[str, str, datetime, int | None]]) -> None:
    land(lake, FORGOTTEN, conform([dict(zip(FORGOTTEN.column, row, strict=True)) for row in rows], FORGOTTEN))
