"""The rows of every table that go when samples are forgotten, by the values of one column of each table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from contracts.contract import Contract
from contracts.tables import QUARANTINE, SAMPLES
from storage.lake import Lake
from suites.registry import suite, suite_names
from tasks.jobs.forget.by_text import orphans
from tasks.jobs.forget.choice import Choice
from tasks.jobs.forget.prompts import asked_about, conversations, imported
from tasks.jobs.forget.refused import refused

Hashes = dict[str, set[str]]  # by table, the values of its identifying column


@dataclass(frozen=True)
class Going:
    """What is to go from each table, and what of it stays or could not be told by a key."""

    rows: Hashes
    shared_calls: int = 0  # prompts that stay, for kept samples have the same
    orphan_calls: int = 0  # prompts that no table connects with the samples, found by their text


def rows_of(lake: Lake, contracts: Iterable[Contract], choice: Choice) -> Going:
    """Find everything that was made of the samples."""
    contracts = list(contracts)
    prompts, kept = asked_about(lake, contracts, choice.hashes)
    shared = prompts & kept
    told_by_key = conversations(lake, prompts) | imported(lake, choice)
    told_by_key -= kept | conversations(lake, shared)
    found_by_text = orphans(lake, choice, told_by_key, kept)
    gone = told_by_key | found_by_text
    wanted: Hashes = {SAMPLES.table: choice.hashes, **_beside_results(lake, choice.hashes)}
    for contract in contracts:
        column = column_of(contract)
        if column == "sample_hash":
            wanted[contract.table] = _there(lake, contract, choice.hashes)
        elif column == "prompt_hash":
            wanted[contract.table] = _there(lake, contract, gone)
        elif contract is QUARANTINE:
            wanted[contract.table] = refused(lake, choice, kept)
    return Going({table: hashes for table, hashes in wanted.items() if hashes}, len(shared), len(found_by_text))


def column_of(contract: Contract) -> str:
    """Name the column by whose values rows of a table are forgotten."""
    for name in ("sample_hash", "prompt_hash"):
        if name in contract.column:
            return name
    return "row_key" if contract is QUARANTINE else contract.key[0]


def count_rows(lake: Lake, contracts: Iterable[Contract], wanted: Mapping[str, set[str]]) -> dict[str, int]:
    """Count the rows of each table that go."""
    counts = {}
    for contract in contracts:
        if hashes := wanted.get(contract.table):
            rows = lake.frame(contract).filter(pl.col(column_of(contract)).is_in(sorted(hashes)))
            counts[contract.table] = int(rows.select(pl.len()).collect().item())
    return counts


def _beside_results(lake: Lake, samples: set[str]) -> Hashes:
    """Find the rows of suites' further tables that name their result and not its sample."""
    wanted: Hashes = {}
    for name in suite_names():
        results, *further = suite(name).contracts
        for contract in further:
            column = column_of(contract)
            if column not in ("sample_hash", "prompt_hash"):
                rows = lake.frame(results).filter(pl.col("sample_hash").is_in(sorted(samples))).select(column).collect()
                wanted[contract.table] = _there(lake, contract, set(rows[column]))
    return wanted


def _there(lake: Lake, contract: Contract, hashes: set[str]) -> set[str]:
    """Select the hashes that the table has."""
    if not hashes:
        return set()
    column = column_of(contract)
    rows = lake.frame(contract).filter(pl.col(column).is_in(sorted(hashes))).select(column).unique().collect()
    return set(rows[column])
