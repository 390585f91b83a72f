"""Commits: a change that lost a race is made again on what the winner wrote, and failures get a plain message."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import polars as pl
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.table import TableMerger

from core.errors import ContractError, LakeError
from storage.lake import first_words

PATIENCE_SECONDS = 120
LONGEST_WAIT_SECONDS = 1.0

# Of a commit that follows immediately the version that was read, or is not made
RIGHT_AFTER = CommitProperties(max_commit_retries=0)

T = TypeVar("T")


def commit(
    change: Callable[[], T], *, busy: str, failed: str, refused: str | None = None, table: DeltaTable | None = None
) -> T:
    """Change a table, and try again where another commit came first.

    Args:
        change: Makes the change; may be called again.
        busy: The error message where other commits came first for two minutes.
        failed: The error message of any other failure, before the engine's own words.
        refused: The error message where a constraint of the table refuses a row; None: a failure like any other.
        table: Brought to its newest version before the change is made again.

    Returns:
        What the change returns.

    Raises:
        LakeError: The change could not be made.
        ContractError: A constraint of the table refuses a row.
    """
    # Only where something is written: it imports Tornado, too.
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

    retrying = Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        wait=wait_random_exponential(multiplier=0.02, max=LONGEST_WAIT_SECONDS),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=lambda _: None if table is None else table.update_incremental(),
        reraise=True,
    )
    try:
        return retrying(change)
    except CommitFailedError as error:
        raise LakeError(busy) from error
    except (DeltaError, OSError, pl.exceptions.PolarsError) as error:
        if refused is not None and ("failed validation check" in str(error) or "constraint" in str(error).lower()):
            # The engine's error quotes the refused rows, which may hold what must not be logged: it is not passed on.
            raise ContractError(refused) from None
        raise LakeError(f"{failed}: {first_words(error)}") from error


def merger_of(
    table: DeltaTable, rows: pl.DataFrame, on: Iterable[str] | str, properties: CommitProperties | None = None
) -> TableMerger:
    """Begin a merge of rows, `new`, into a table, `old`: where the columns `on` agree, or where that SQL is true."""
    return table.merge(
        rows.to_arrow(),
        predicate=on if isinstance(on, str) else " AND ".join(f"old.{name} = new.{name}" for name in on),
        source_alias="new",
        target_alias="old",
        streamed_exec=False,  # lets the keys of the rows prune the files of the table
        commit_properties=properties,
    )
