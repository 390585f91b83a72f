"""The files of a lake, through the store that Delta uses: a folder, or an object store whose requests may fail."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile

from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from polars.exceptions import PolarsError
from pyarrow import fs

from evalake.core.errors import LakeError
from evalake.storage.lake import Lake, require_readable_path, short_message

PROBE = ".evalake-write-probe"


def open_store(lake: Lake, folder: str = "") -> fs.PyFileSystem:
    """Open a file system on the lake or a folder of it."""
    uri = f"{lake.uri.rstrip('/')}/{folder}" if folder else lake.uri
    return fs.PyFileSystem(DeltaStorageHandler(uri, dict(lake.storage_options)))


@contextmanager
def failing_as(sentence: str) -> Iterator[None]:
    """Raise LakeError with the sentence and the store's own words where a request to the store fails."""
    try:
        yield
    except (DeltaError, OSError, PolarsError) as error:
        raise LakeError(f"{sentence}: {short_message(error)}") from error


def file_sizes(lake: Lake, folder: str = "") -> Mapping[str, int]:
    """List the files in a folder of the lake with their sizes in bytes; empty where there is no folder."""
    return {path: info.size for path, info in file_infos(lake, folder).items()}


def file_infos(lake: Lake, folder: str = "") -> Mapping[str, fs.FileInfo]:
    """List the store's details of each file in a folder, by path; empty where there is no folder."""
    with failing_as(f"cannot list the lake {lake.uri}"):
        try:
            selector = fs.FileSelector("", recursive=True, allow_not_found=True)
            infos = open_store(lake, folder).get_file_info(selector)
        except TableNotFoundError:  # a local folder that does not exist
            return {}
    return {info.path: info for info in infos if info.type == fs.FileType.File}


def tables_there(lake: Lake, besides: Collection[str] = ()) -> frozenset[str]:
    """Name the folders of the lake that hold a Delta log, whoever made them, without those of some names."""
    with failing_as(f"cannot list the lake {lake.uri}"):
        try:
            infos = open_store(lake).get_file_info(fs.FileSelector("", recursive=False, allow_not_found=True))
        except TableNotFoundError:  # a local folder that does not exist
            return frozenset()
    folders = {info.path.strip("/") for info in infos if info.type == fs.FileType.Directory} - {*besides}
    return frozenset(name for name in folders if file_sizes(lake, f"{name}/_delta_log"))


def modified_at(lake: Lake, folder: str, path: str) -> datetime | None:
    """Find when a file in a folder of the lake was written; None where there is none, or its store does not say."""
    with failing_as(f"cannot look for {path} of {folder} in the lake {lake.uri}"):
        info = open_store(lake, folder).get_file_info(path)
    return info.mtime if info.type == fs.FileType.File else None


def read_object(store: fs.FileSystem, path: str) -> bytes:
    """Read a whole file. Raises LakeError where it cannot be read."""
    with failing_as(f"cannot read {path} of the lake"), store.open_input_stream(path) as stream:
        return bytes(stream.read())


def write_object(store: fs.PyFileSystem, path: str, chunks: Iterable[bytes]) -> int:
    """Write a file from chunks of bytes; returns its size. Raises LakeError where it cannot be written."""
    with failing_as(f"cannot write {path} of the lake"):
        return _write(store, path, chunks)


def _write(store: fs.PyFileSystem, path: str, chunks: Iterable[bytes]) -> int:
    # Delta's inner stream: its Python wrapper cannot write
    stream = store.handler._handler.open_output_stream(path, None)
    written = 0
    for chunk in chunks:
        stream.write(chunk)
        written += len(chunk)
    stream.close()  # publishes the file, so not where a chunk could not be read
    return written


def require_write_access(lake: Lake) -> None:
    """Raise LakeError unless the lake, or the place where its first run creates it, is writable. Leaves no file."""
    if "://" in lake.uri:
        with failing_as(f"the lake {lake.uri} is not writable"):
            store = open_store(lake)
            _write(store, PROBE, [b"evalake"])
            store.delete_file(PROBE)
        return
    folder = Path(lake.address)
    require_readable_path(folder)
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise LakeError(f"the lake {lake.uri} is not writable ({error.strerror}): name another with --lake") from error
