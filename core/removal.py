"""Removing files below a folder, and none that a link leads to."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from core.errors import LakeError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def links_below(folder: Path) -> Iterator[Path]:
    """Yield the folder itself where it is a link, and every link below it; no link is followed."""
    if folder.is_symlink():
        yield folder
        return
    for parent, folders, files in os.walk(folder):
        yield from (place for name in sorted([*folders, *files]) if (place := Path(parent, name)).is_symlink())


def require_no_links(folder: Path, *, below: bool = True) -> None:
    """Raise LakeError, naming the first, where a folder is a link or holds one: nothing in it may be deleted then.

    With `below` false, only the folder itself is looked at.
    """
    if link := next(links_below(folder), None) if below or folder.is_symlink() else None:
        raise LakeError(
            f"{link} is a link to {str(link.readlink())!r}, so nothing in {folder} is deleted: remove the link, or put "
            "what it leads to in its place"
        )


def remove_below(folder: Path, names: Iterable[str]) -> None:
    """Remove files by their path within a folder; those that are gone already count as removed.

    Every folder on the way is opened without following a link, so what is put there meanwhile leads nowhere. Raises
    LakeError for a path that leaves the folder, OSError where a file cannot be removed.
    """
    root = os.open(folder, _FOLDER)
    try:
        for name in names:
            *parents, last = _parts(folder, name)
            _remove(root, parents, last)
    finally:
        os.close(root)


def _parts(folder: Path, name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise LakeError(f"{name!r} is no file below {folder}, and is not deleted")
    return parts


def _remove(root: int, parents: list[str], last: str) -> None:
    opened = os.dup(root)
    try:
        for parent in parents:
            inner = os.open(parent, _FOLDER, dir_fd=opened)
            os.close(opened)
            opened = inner
        os.unlink(last, dir_fd=opened)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)
