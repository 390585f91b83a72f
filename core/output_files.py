"""Writing files: each whole or not at all, through no link, into a folder that was looked at.

A folder may hold what a stranger put there. So a file is written under a random name that did not exist, and then takes
the place of the one before it; a link in that place is refused, and what it leads to stays as it is.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from core.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,127}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` once the block ends without an error, in a folder that exists.

    Raises UsageError where `path` is a link or no regular file, or its folder is a link or anybody may write there;
    OSError where it cannot be written.
    """
    folder = _open_folder(path.parent)
    try:
        _require_replaceable(folder, path)
        draft = f".{secrets.token_hex(16)}.part"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:
                yield file
            os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _remove(draft, folder)
            raise
    finally:
        os.close(folder)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, a text in UTF-8, as `output_file` does, which says what it raises."""
    with output_file(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8"))


def make_folder(folder: Path, *, own: bool = False) -> Path:
    """Make a folder that files are written into, where it is missing, and look at it; returns it.

    Args:
        folder: The folder.
        own: Whether a folder of another user than this one or root is refused, too.

    Raises:
        UsageError: It is a link, anybody may write there, or it is another user's.
        OSError: It cannot be made.
    """
    if not os.path.lexists(folder):
        _require_no_link(folder)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    opened = _open_folder(folder)
    try:
        owner = os.fstat(opened).st_uid
    finally:
        os.close(opened)
    if own and owner not in (os.geteuid(), 0):
        raise UsageError(f"the folder {folder} belongs to another user ({owner}): name a folder of your own")
    return folder


def place_in(folder: Path, name: str) -> Path:
    """Name the place below a folder that has the name of a run. Raises UsageError where the name is not of that form.

    A name may come from a lake that somebody else wrote; letters, digits, `_`, `-` and `.` lead to no other folder.
    """
    if not is_run_name(name):
        raise UsageError(f"{name[:80]!r} is no name of a run: it has letters, digits, `_`, `-` and `.`, at most 128")
    return folder / name


def is_run_name(name: str) -> bool:
    """Tell whether a name is of a run's form."""
    return _NAME.fullmatch(name) is not None


def _open_folder(folder: Path) -> int:
    """Open a folder for files to be written; its owner may be anybody."""
    _require_no_link(folder)
    opened = os.open(folder, _FOLDER)
    mode = os.fstat(opened).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        os.close(opened)
        raise UsageError(f"anybody may write to the folder {folder}: name another, or take that right from others")
    return opened


def _require_no_link(folder: Path) -> None:
    """Raise UsageError where a folder is a link, or one above it in the working directory, which a stranger filled.

    Links of root are the system's, as /tmp on a Mac is.
    """
    here = Path.cwd()
    for each in (folder, *folder.parents):
        is_looked_at = each is folder or here in each.absolute().parents
        if is_looked_at and each.is_symlink() and (each.lstat().st_uid != 0 or os.geteuid() == 0):
            raise UsageError(f"the folder {each} is a link: name the folder that it leads to")


def _require_replaceable(folder: int, path: Path) -> None:
    try:
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise UsageError(f"{path} is a link: remove it, or name the file that it leads to")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path} is no regular file: name another")


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
