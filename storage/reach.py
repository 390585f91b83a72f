"""Reach: whether a lake can be written to, found out without leaving anything behind."""

from pathlib import Path
from tempfile import TemporaryFile

from deltalake.exceptions import DeltaError, TableNotFoundError

from core.errors import LakeError
from storage.lake import Lake, first_words, require_readable_path
from storage.objects import store_of, write_object

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
