"""Objects: what is stored below a URI, whatever it is, through the store that Delta itself uses."""

from collections.abc import Iterable, Mapping

from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from core.errors import LakeError
from storage.lake import Lake, first_words


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
