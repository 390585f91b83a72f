"""Reads, writes and removes files safely where others may have put links, pipes or huge files."""

import errno
import hashlib
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from evalake.core.errors import EvalakeError, LakeError, SourceError, UsageError

MEGABYTE = 2**20
LARGEST_FILE = 512 * MEGABYTE
LARGEST_SHEET = 64 * MEGABYTE  # read as a whole
LARGEST_IN_ALL = 4096 * MEGABYTE

LINK_OUT = "link that leads out of the dataset"
NOT_REGULAR = "no regular file"
TOO_LARGE = "file too large"
TOO_MUCH = "beyond what a dataset may hold in all"
ABSENT = "there is no such file"
UNREADABLE = "file that cannot be read"


class FileRefusedError(SourceError):
    """A file was not read; `reason` is one of the phrases above. The error quotes none of its contents."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} is not read: {reason}")
        self.reason = reason


@dataclass
class Files:
    """The files below the root of one source. The root, which the user chose, may be a link or a file."""

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
        """Copy a file to a new one in chunks.

        Raises:
            FileRefusedError: As from `read`.
        """
        with self._open(file, largest) as (stream, most), to.open("xb") as copied:
            while chunk := stream.read(MEGABYTE):
                most -= len(chunk)
                if most < 0:  # it has grown since
                    raise FileRefusedError(file, TOO_LARGE)
                copied.write(chunk)

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
        """Open a file, and yield it with the maximum number of bytes to read."""
        try:
            # Follow no new link, and do not wait for a pipe's writer
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
        """Check a file's kind and size, count it, and return the maximum number of bytes to read."""
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
    """Read a file that the user named, following links.

    Raises:
        FileRefusedError: It is not a regular file, cannot be read, or is too large.
    """
    return Files(file, largest).read(file)


def tables_beside(module: str, name: str) -> Mapping[str, Any]:
    """Read a TOML file that ships beside a module, whose `__file__` is given."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,127}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` when the block ends without an error. The folder exists.

    Raises UsageError where `path` is a link or no regular file, or its folder is a link or writable for all; OSError
    where it cannot be written.
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
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file in UTF-8 through `output_file`, and raise as it does."""
    with output_file(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8"))


def make_folder(folder: Path, *, own: bool = False) -> Path:
    """Create a folder for files, where it is missing, and check it; returns it.

    Args:
        folder: The folder.
        own: Whether to refuse a folder of other users than this one and root.

    Raises:
        UsageError: It is a link, writable for all, or another user's.
        OSError: It cannot be created.
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
    """Return the path of a run's name below a folder. Raises UsageError for a name that could lead elsewhere."""
    if not is_run_name(name):
        raise UsageError(f"{name[:80]!r} is not a run's name: use letters, digits, `_`, `-` and `.`, at most 128")
    return folder / name


def is_run_name(name: str) -> bool:
    """Tell whether a name has the form of a run's name."""
    return _NAME.fullmatch(name) is not None


def _open_folder(folder: Path) -> int:
    """Open a folder for writing files; its owner may be anybody."""
    _require_no_link(folder)
    opened = os.open(folder, _FOLDER)
    mode = os.fstat(opened).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        os.close(opened)
        raise UsageError(f"all users may write to the folder {folder}: name another, or remove that right")
    return opened


def _require_no_link(folder: Path) -> None:
    """Raise UsageError where a folder, or one above it inside the working directory, is a link.

    Links of root, like /tmp on a Mac, are allowed.
    """
    here = Path.cwd()
    for each in (folder, *folder.parents):
        is_checked = each is folder or here in each.absolute().parents
        if is_checked and each.is_symlink() and (each.lstat().st_uid != 0 or os.geteuid() == 0):
            raise UsageError(f"the folder {each} is a link: name the folder that it leads to")


def _require_replaceable(folder: int, path: Path) -> None:
    try:
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise UsageError(f"{path} is a link: remove it, or name the file that it leads to")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path} is not a regular file: name another")


CACHE, STATE = "XDG_CACHE_HOME", "XDG_STATE_HOME"


def cache_folder() -> Path:
    """Return the user's cache folder. Raises RuntimeError where the user has no home."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache") / "evalake"


def state_folder() -> Path:
    """Return the user's state folder. Raises RuntimeError where the user has no home."""
    named = os.environ.get(STATE, "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".local" / "state") / "evalake"


def lake_folder(address: str) -> Path:
    """Return the folder of the user's state of one lake, by its whole address."""
    return state_folder() / hashlib.sha256(address.encode()).hexdigest()[:16]


def is_ours(place: Path) -> bool:
    """Tell whether a path and its folder, where they exist, belong to this user and not to another."""
    with suppress(FileNotFoundError):
        for each in (place.parent, place):
            if {each.lstat().st_uid, each.stat().st_uid} != {os.geteuid()}:
                return False
    return True


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with access for this user only."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


_MODES = {os.O_RDONLY: "r", os.O_WRONLY: "w", os.O_RDWR: "r+"}


def open_private(file: Path, flags: int) -> IO[str]:
    """Open a file that belongs to this user, and whose contents no other can read or have written.

    Raises EvalakeError for any other file, and for a link.
    """
    try:
        opened = os.fdopen(os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), _MODES[flags & os.O_ACCMODE])
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise EvalakeError(f"{file} is a link: delete it") from error
        raise
    found = os.fstat(opened.fileno())
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        opened.close()
        raise EvalakeError(f"{file} is another user's, or others may write to it: delete it")
    return opened


def open_state(address: str, name: str) -> IO[str]:
    """Open a file of the user's state of one lake for reading and writing; creates it where it is missing.

    Raises LakeError where another user has made its folder, or it cannot be written.
    """
    file = lake_folder(address) / name
    if not is_ours(file.parent):
        raise LakeError(f"{file.parent} or the folder above it is another user's: name another place by {STATE}")
    try:
        make_private(file.parent)
        return open_private(file, os.O_RDWR | os.O_CREAT)
    except (OSError, RuntimeError) as error:
        raise LakeError(f"{file} cannot be written: name a place for it by {STATE} ({error})") from error


_REAL_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def links_below(folder: Path) -> Iterator[Path]:
    """Yield every link below a folder, or the folder itself if it is a link, without following any."""
    if folder.is_symlink():
        yield folder
        return
    for parent, folders, files in os.walk(folder):
        yield from (place for name in sorted([*folders, *files]) if (place := Path(parent, name)).is_symlink())


def require_no_links(folder: Path, *, below: bool = True) -> None:
    """Raise LakeError, naming the first, where a folder is a link or, with `below`, holds one."""
    if link := next(links_below(folder), None) if below or folder.is_symlink() else None:
        raise LakeError(
            f"{link} is a link to {str(link.readlink())!r}, so nothing in {folder} is deleted: remove the link, or "
            "replace it by its target"
        )


def remove_below(folder: Path, names: Iterable[str]) -> None:
    """Remove files by path within a folder, through no link; missing files count as removed.

    Raises LakeError for a path that leaves the folder, OSError where a file cannot be removed.
    """
    root = os.open(folder, _REAL_FOLDER)
    try:
        for name in names:
            parts = PurePosixPath(name).parts
            if not parts or ".." in parts or PurePosixPath(name).is_absolute():
                raise LakeError(f"{name!r} is not a file below {folder}, so it is not deleted")
            _remove_below(root, parts[:-1], parts[-1])
    finally:
        os.close(root)


def _remove_below(root: int, parents: Iterable[str], last: str) -> None:
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
