"""Reading files that others made: regular ones only, inside their root, and no more of them than fits."""

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from evalake.core.errors import LakeError, SourceError, UsageError

MEGABYTE = 2**20
PIECE = MEGABYTE  # read at a time of what is copied
LARGEST_FILE = 512 * MEGABYTE
LARGEST_SHEET = 64 * MEGABYTE  # what a person filled in, read as a whole
LARGEST_IN_ALL = 4096 * MEGABYTE

LINK_OUT = "link that leads out of the dataset"
NOT_REGULAR = "no regular file"
TOO_LARGE = "file too large"
TOO_MUCH = "beyond what a dataset may hold in all"
ABSENT = "there is none"
UNREADABLE = "file that cannot be read"


class FileRefusedError(SourceError):
    """A file is not read; `reason` is one of the fixed phrases above, and nothing here tells what the file holds."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} is not read: {reason}")
        self.reason = reason


@dataclass
class Files:
    """The files below the root of one source, each read once.

    A root may itself be a link or a file: its user chose it. What lies below was chosen by whoever made the dataset.
    """

    root: Path
    largest: int = LARGEST_FILE  # bytes of one file
    in_all: int = LARGEST_IN_ALL  # bytes of all
    _counted: int = 0
    _resolved: Path = field(init=False)

    def __post_init__(self) -> None:
        self._resolved = self.root.resolve()

    def read(self, file: Path, largest: int | None = None) -> bytes:
        """Read a file.

        Raises:
            FileRefusedError: It leads out of the root, is no regular file, or is too large.
        """
        with self._open(file, largest) as (stream, most):
            try:
                content = stream.read(most + 1)
            except OSError as error:
                raise FileRefusedError(file, UNREADABLE) from error
        if len(content) > most:  # it has grown since
            raise FileRefusedError(file, TOO_LARGE)
        return content

    def copy(self, file: Path, to: Path, largest: int | None = None) -> None:
        """Copy a file to a new one, a piece at a time and no more of it than it may hold.

        Raises:
            FileRefusedError: As from `read`.
        """
        with self._open(file, largest) as (stream, most), to.open("xb") as copied:
            while piece := stream.read(PIECE):
                most -= len(piece)
                if most < 0:  # it has grown since
                    raise FileRefusedError(file, TOO_LARGE)
                copied.write(piece)

    def check(self, file: Path, largest: int | None = None) -> Path:
        """Resolve a file's real path, for callers that read it in parts.

        Raises:
            FileRefusedError: As from `read`.
        """
        try:
            resolved = self._inside(file)
            self._admit(file, resolved.lstat(), largest)
        except FileNotFoundError as error:
            raise FileRefusedError(file, ABSENT) from error
        except OSError as error:
            raise FileRefusedError(file, UNREADABLE) from error
        return resolved

    @contextmanager
    def _open(self, file: Path, largest: int | None) -> Iterator[tuple[IO[bytes], int]]:
        """Open a file, and yield it with the most bytes that may be read of it."""
        try:
            # Follow no link that was put there meanwhile, and do not wait for a pipe's writer.
            opened = os.open(self._inside(file), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise FileRefusedError(file, ABSENT) from error
        except OSError as error:
            raise FileRefusedError(file, UNREADABLE) from error
        try:
            most = self._admit(file, os.fstat(opened), largest)
            with os.fdopen(opened, "rb", closefd=False) as stream:
                yield stream, most
        finally:
            os.close(opened)

    def _inside(self, file: Path) -> Path:
        try:
            resolved = file.resolve()
        except RuntimeError as error:  # a link to itself
            raise FileRefusedError(file, UNREADABLE) from error
        if not resolved.is_relative_to(self._resolved):
            raise FileRefusedError(file, LINK_OUT)
        return resolved

    def _admit(self, file: Path, status: os.stat_result, largest: int | None) -> int:
        """Check a file's kind and size, count it, and return the most bytes that may be read."""
        most = self.largest if largest is None else largest
        if not stat.S_ISREG(status.st_mode):
            raise FileRefusedError(file, NOT_REGULAR)
        if status.st_size > most:
            raise FileRefusedError(file, TOO_LARGE)
        if self._counted + status.st_size > self.in_all:
            raise FileRefusedError(file, TOO_MUCH)
        self._counted += status.st_size
        return most


def read_file(file: Path, largest: int = LARGEST_FILE) -> bytes:
    """Read a file that the user named, wherever a link leads.

    Raises:
        FileRefusedError: It is no regular file, cannot be read, or is too large.
    """
    return Files(file, largest).read(file)


# Writing files: each whole or not at all, through no link, into a folder that was looked at.


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


# Folders for the user alone, outside of any lake, where others may be able to write: the user's cache and state.


CACHE = "XDG_CACHE_HOME"


def cache_folder() -> Path:
    """Name the folder of what evalake can make anew. Raises RuntimeError where the user has no home."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache") / "evalake"


def is_ours(place: Path) -> bool:
    """Tell whether a file or folder of evalake's, and the folder that it is in, belong to this user, where they exist.

    What other users have put in such a place is neither trusted nor written into.
    """
    with suppress(FileNotFoundError):  # without the folder, nothing is in it
        for each in (place.parent, place):
            if {each.lstat().st_uid, each.stat().st_uid} != {os.geteuid()}:
                return False
    return True


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone, whatever the umask lets others do.

    A user who may write to a folder above it could put another folder in its place.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


# Removing files below a folder, and none that a link leads to.


_REAL_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    root = os.open(folder, _REAL_FOLDER)
    try:
        for name in names:
            *parents, last = _parts(folder, name)
            _remove_below(root, parents, last)
    finally:
        os.close(root)


def _parts(folder: Path, name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise LakeError(f"{name!r} is no file below {folder}, and is not deleted")
    return parts


def _remove_below(root: int, parents: list[str], last: str) -> None:
    opened = os.dup(root)
    try:
        for parent in parents:
            inner = os.open(parent, _REAL_FOLDER, dir_fd=opened)
            os.close(opened)
            opened = inner
        os.unlink(last, dir_fd=opened)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)
