"""Commits: a change that lost a race is made again on what the winner wrote, and failures get a plain message."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from evalake.storage.lake import Lake, first_words, require_readable_path

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


# Objects: what is stored below a URI, whatever it is, through the store that Delta itself uses.


def store_of(lake: Lake, folder: str = "") -> fs.PyFileSystem:
    """Open a file system on the lake, or on a folder of it, such as a table's."""
    uri = f"{lake.uri.rstrip('/')}/{folder}" if folder else lake.uri
    return fs.PyFileSystem(DeltaStorageHandler(uri, dict(lake.storage_options)))


def objects_of(lake: Lake, folder: str = "") -> Mapping[str, int]:
    """List everything stored there: path within it, and size in bytes; nothing where there is no such folder."""
    return {path: info.size for path, info in infos_of(lake, folder).items()}


def infos_of(lake: Lake, folder: str = "") -> Mapping[str, fs.FileInfo]:
    """List the store's details of everything stored there, by path within it; nothing where there is no such folder."""
    try:
        selector = fs.FileSelector("", recursive=True, allow_not_found=True)
        infos = store_of(lake, folder).get_file_info(selector)
    except TableNotFoundError:  # a local folder that does not exist
        return {}
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot list the lake {lake.uri}: {first_words(error)}") from error
    return {info.path: info for info in infos if info.type == fs.FileType.File}


def read_object(store: fs.FileSystem, path: str) -> bytes:
    """Read an object as a whole."""
    with store.open_input_stream(path) as stream:
        return bytes(stream.read())


def write_object(store: fs.PyFileSystem, path: str, chunks: Iterable[bytes]) -> int:
    """Write an object from pieces of bytes; returns how many bytes it has."""
    # By the engine's own stream: in the wrapper that Delta's Python puts around it, nothing can be written.
    stream = store.handler._handler.open_output_stream(path, None)
    written = 0
    try:
        for chunk in chunks:
            stream.write(chunk)
            written += len(chunk)
    finally:
        stream.close()
    return written


# Reach: whether a lake can be written to, found out without leaving anything behind.


PROBE = ".evalake-write-probe"


def require_reachable(lake: Lake) -> None:
    """Raise LakeError where nothing can be written to the lake, or, before its first run, where it is to be."""
    if "://" in lake.uri:
        _require_object_store(lake)
        return
    folder = Path(lake.uri).absolute()
    require_readable_path(folder)
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise LakeError(f"the lake {lake.uri} is not writable ({error.strerror}): name another with --lake") from error


def _require_object_store(lake: Lake) -> None:
    try:
        store = store_of(lake)
        write_object(store, PROBE, [b"evalake"])
        store.delete_file(PROBE)
    except (DeltaError, OSError, TableNotFoundError) as error:
        raise LakeError(f"nothing can be written to the lake {lake.uri}: {first_words(error)}") from error


# Portions: files in groups of a bounded size, for what cannot hold all of them at once.


def portions(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Yield groups of files, in their order, that are no larger than `most` together; a file is never cut."""
    portion: list[str] = []
    taken = 0
    for file, size in sizes.items():
        if portion and taken + size > most:
            yield portion
            portion, taken = [], 0
        portion.append(file)
        taken += size
    if portion:
        yield portion
