"""Reading files that others made: regular ones only, inside their root, and no more of them than fits."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from core.errors import SourceError

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
