"""Exactly-once landing: rows are merged into their table by key, and a lost race is merged again."""

from dataclasses import dataclass
from typing import NoReturn

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contracts.arrow import conform
from contracts.contract import Contract
from contracts.errors import ContractError, LakeError
from storage.lake import Lake, first_words

# Merges that race are decided by the log; the loser merges again against what the winner wrote.
CONFLICT_RETRIES = Retrying(
    retry=retry_if_exception_type(CommitFailedError),
    wait=wait_random_exponential(multiplier=0.05, max=2.0),
    stop=stop_after_delay(120),
    reraise=True,
)


@dataclass(frozen=True, slots=True)
class Landed:
    """What a landing did: rows added, rows replaced as their contract allows, and rows that were there already."""

    inserted: int = 0
    replaced: int = 0
    already_present: int = 0

    def __add__(self, other: "Landed") -> "Landed":
        return Landed(
            self.inserted + other.inserted,
            self.replaced + other.replaced,
            self.already_present + other.already_present,
        )


def land(lake: Lake, contract: Contract, rows: pl.DataFrame) -> Landed:
    """Merge `rows` into the contract's table by its key; rows of a key that is there already change nothing.

    The exception is a row that its contract lets a later one replace. Of several rows with
    one key in `rows` the first counts. Raises SchemaMismatchError where the frame is not exactly the contract's,
    ContractError where a table constraint refuses a row, LakeError where the lake does not take the commit.
    """
    source = conform(rows, contract).unique(subset=list(contract.key), keep="first", maintain_order=True)
    if source.is_empty():
        return Landed()
    table = lake.ensure(contract)
    try:
        for attempt in CONFLICT_RETRIES.copy():
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    table.update_incremental()
                done = _merge(table, contract, source)
    except CommitFailedError as error:
        raise LakeError(f"the table {contract.table} kept changing while rows were landing; run again") from error
    except (DeltaError, OSError) as error:
        _raise_refusal(contract, error)
    inserted, replaced = int(done["num_target_rows_inserted"]), int(done["num_target_rows_updated"])
    return Landed(inserted, replaced, source.height - inserted - replaced)


def _merge(table: DeltaTable, contract: Contract, source: pl.DataFrame) -> dict[str, int]:
    keys = dict.fromkeys((*contract.partition_by, *contract.key))
    merger = table.merge(
        source.to_arrow(),
        predicate=" AND ".join(f"old.{key} = new.{key}" for key in keys),
        source_alias="new",
        target_alias="old",
        streamed_exec=False,  # lets the keys of the source prune the files of the table
    )
    if contract.replaced_when:
        merger = merger.when_matched_update_all(predicate=contract.replaced_when)
    return merger.when_not_matched_insert_all().execute()


def _raise_refusal(contract: Contract, error: Exception) -> NoReturn:
    text = str(error)
    if "failed validation check" in text or "constraint" in text.lower():
        # The engine quotes the refused rows, and they may hold what must not be in a log: its error goes no further.
        raise ContractError(
            f"a row breaks a constraint of the table {contract.table}: nothing of the batch landed"
        ) from None
    raise LakeError(f"cannot write the table {contract.table}: {first_words(error)}") from error
