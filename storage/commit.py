"""Commits to tables, which are retried after a conflict, and access to the files of a lake."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

import polars as pl
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.table import TableMerger
from pyarrow import fs

from evalake.core.errors import ContractError, LakeError
from evalake.storage.lake import Lake, require_readable_path, short_message

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


def open_store(lake: Lake, folder: str = "") -> fs.PyFileSystem:
    """Open a file system on the lake or a folder of it, through the store that Delta uses."""
    uri = f"{lake.uri.rstrip('/')}/{folder}" if folder else lake.uri
    return fs.PyFileSystem(DeltaStorageHandler(uri, dict(lake.storage_options)))


def file_sizes(lake: Lake, folder: str = "") -> Mapping[str, int]:
    """List the files in a folder of the lake with their sizes in bytes; empty where there is no folder."""
    return {path: info.size for path, info in file_infos(lake, folder).items()}


def file_infos(lake: Lake, folder: str = "") -> Mapping[str, fs.FileInfo]:
    """List the store's details of each file in a folder, by path; empty where there is no folder."""
    try:
        selector = fs.FileSelector("", recursive=True, allow_not_found=True)
        infos = open_store(lake, folder).get_file_info(selector)
    except TableNotFoundError:  # a local folder that does not exist
        return {}
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot list the lake {lake.uri}: {short_message(error)}") from error
    return {info.path: info for info in infos if info.type == fs.FileType.File}


def read_object(store: fs.FileSystem, path: str) -> bytes:
    """Read a whole file."""
    with store.open_input_stream(path) as stream:
        return bytes(stream.read())


def write_object(store: fs.PyFileSystem, path: str, chunks: Iterable[bytes]) -> int:
    """Write a file from chunks of bytes; returns its size."""
    # Delta's inner stream: its Python wrapper cannot write
    stream = store.handler._handler.open_output_stream(path, None)
    written = 0
    try:
        for chunk in chunks:
            stream.write(chunk)
            written += len(chunk)
    finally:
        stream.close()
    return written


PROBE = ".evalake-write-probe"


def require_write_access(lake: Lake) -> None:
    """Raise LakeError unless the lake, or the place where its first run creates it, is writable. Leaves no file."""
    if "://" in lake.uri:
        try:
            store = open_store(lake)
            write_object(store, PROBE, [b"evalake"])
            store.delete_file(PROBE)
        except (DeltaError, OSError, TableNotFoundError) as error:
            raise LakeError(f"the lake {lake.uri} is not writable: {short_message(error)}") from error
        return
    folder = Path(lake.address)
    require_readable_path(folder)
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise LakeError(f"the lake {lake.uri} is not writable ({error.strerror}): name another with --lake") from error
