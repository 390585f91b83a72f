"""Commits to tables, which are retried after a conflict."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import polars as pl
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.table import TableMerger

from evalake.core.errors import ContractError, LakeError
from evalake.storage.lake import short_message

PATIENCE_SECONDS = 120
LONGEST_WAIT_SECONDS = 1.0

# The commit fails unless it directly follows the version that was read
NO_RETRIES = CommitProperties(max_commit_retries=0)

T = TypeVar("T")


def commit(
    change: Callable[[], T], *, busy: str, failed: str, refused: str | None = None, table: DeltaTable | None = None
) -> T:
    """Change a table; after a conflict with another commit, make the change again on the newest version.

    Args:
        change: Makes the change; may be called again.
        busy: The error message after two minutes of conflicts.
        failed: The error message of any other failure; Delta's own message follows it.
        refused: The error message where a constraint refuses a row; None: as any other failure.
        table: The table to update before each retry.

    Returns:
        What the change returns.

    Raises:
        LakeError: The change could not be made.
        ContractError: A constraint of the table refuses a row.
    """
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

    # It keeps what it holds until the garbage is collected: neither the change, which has the rows, nor the table
    retrying = Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        wait=wait_random_exponential(multiplier=0.02, max=LONGEST_WAIT_SECONDS),
        stop=stop_after_delay(PATIENCE_SECONDS),
        reraise=True,
    )
    try:
        for attempt in retrying:
            with attempt:
                if table is not None and attempt.retry_state.attempt_number > 1:
                    table.update_incremental()
                return change()
        raise AssertionError("the last attempt raises")
    except CommitFailedError as error:
        raise LakeError(busy) from error
    except (DeltaError, OSError, pl.exceptions.PolarsError) as error:
        if refused is not None and ("failed validation check" in str(error) or "constraint" in str(error).lower()):
            # Delta's error quotes the refused rows, which may hold secrets
            raise ContractError(refused) from None
        raise LakeError(f"{failed}: {short_message(error)}") from error


def begin_merge(
    table: DeltaTable, rows: pl.DataFrame, on: Iterable[str] | str, properties: CommitProperties | None = None
) -> TableMerger:
    """Begin a merge of rows (`new`) into a table (`old`). `on` names columns to match, or is a SQL condition."""
    return table.merge(
        rows.to_arrow(),
        predicate=on if isinstance(on, str) else " AND ".join(f"old.{name} = new.{name}" for name in on),
        source_alias="new",
        target_alias="old",
        streamed_exec=False,  # so that the keys of the rows prune files
        commit_properties=properties,
    )
