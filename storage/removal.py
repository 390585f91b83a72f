"""Removal: the one place where files of a lake's tables are deleted, and nothing that a link leads to."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from core import removal
from core.errors import LakeError
from storage.lake import Lake, first_words
from storage.objects import store_of

REMOVERS = 8


def require_no_links(lake: Lake, table: str) -> None:
    """Raise LakeError, naming one, where the folder of a table is a link or holds links; an object store has none."""
    if folder := _folder(lake, table):
        removal.require_no_links(folder)


def remove(lake: Lake, table: str, paths: Sequence[str]) -> None:
    """Remove files of a table by their path within it. Raises LakeError where one leads elsewhere, or stays."""
    try:
        if folder := _folder(lake, table):
            removal.remove_below(folder, paths)
            return
        store = store_of(lake, table)
        with ThreadPoolExecutor(REMOVERS) as pool:
            list(pool.map(store.delete_file, paths))
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot remove files of the table {table}: {first_words(error)}") from error


def _folder(lake: Lake, table: str) -> Path | None:
    """Find the folder of a table; None where the lake is in an object store. The lake itself may be a link."""
    scheme, there, path = lake.uri.partition("://")
    if there and scheme != "file":
        return None
    return (Path(unquote(path)) if there else Path(lake.uri)).resolve() / table
