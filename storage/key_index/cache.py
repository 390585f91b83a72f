"""Where segments are kept: a folder of the user's cache for each lake, and a list there of the segments that count.

All of it can be made anew from the ledger. So where a file there is torn, of another version or another user's, the
index counts as empty, and where the disk is full nothing is kept; callers never fail for it. The list is replaced as a
whole, and names files that are whole; one process at a time changes it.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from core.default_lake import whole_address
from core.private_folders import cache_folder, is_ours, make_private
from storage.key_index.segment import Array, Segment, write

FORMAT = 1
LIST = "segments.json"
MOST_REPEATED = 10_000  # marks; where there are more, the list holds none of them


@dataclass(frozen=True)
class Kept:
    """A segment on disk."""

    name: str
    files: tuple[str | None, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Listed:
    """The segments that count, and the marks that two rows in their files have; None where those are too many."""

    segments: tuple[Kept, ...] = ()
    repeated: tuple[int, ...] | None = ()


@dataclass(frozen=True)
class Cache:
    """What is kept of one lake's ledger, told apart by the lake's whole address and the ledger's id."""

    folder: Path
    lake: str
    ledger_id: str

    @classmethod
    def of(cls, lake_uri: str, ledger_id: str) -> "Cache | None":
        """Locate the cache of a ledger; None where the user has no folder for it that nobody else can write to."""
        with suppress(OSError, RuntimeError):
            folder = folder_of(lake_uri)
            if is_ours(folder):
                return cls(folder, whole_address(lake_uri), ledger_id)
        return None

    def listed(self) -> Listed:
        """Read the list of segments; an empty one where there is none, or where it is damaged or of another ledger."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            read = json.loads((self.folder / LIST).read_text(encoding="utf-8"))
            if (read["format"], read["ledger"]) == (FORMAT, self.ledger_id):
                marks = read["repeated"]
                return Listed(tuple(map(_kept, read["segments"])), None if marks is None else tuple(map(int, marks)))
        return Listed()

    def load(self, kept: Kept, *, in_order: bool = False) -> Segment:
        """Map a segment. Raises OSError or ValueError where its file is not whole."""
        return Segment.load(self.folder / kept.name, kept.files, kept.lengths, in_order=in_order)

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Take the lock under which one process at a time changes the list; yield whether this process got it."""
        make_private(self.folder)
        self.folder.chmod(0o700)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)

    def write(self, segments: Sequence[Segment]) -> tuple[Kept, Array]:
        """Merge segments into one on disk; returns it, and the marks that more than one of its rows has."""
        name = f"{uuid4().hex}.keys"
        try:
            with os.fdopen(_create(self.folder / name), "wb") as file:
                files, lengths, repeated = write(file, segments)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            (self.folder / name).unlink(missing_ok=True)  # such as where the disk is full
            raise
        return Kept(name, files, lengths), repeated

    def save(self, segments: Sequence[Kept], repeated: Array | None) -> None:
        """Replace the list, and remove the files of segments that it does not name."""
        marks = None if repeated is None or repeated.size > MOST_REPEATED else repeated.tolist()
        content = {
            "format": FORMAT,
            "lake": self.lake,
            "ledger": self.ledger_id,
            "repeated": marks,
            "segments": [
                {"name": each.name, "files": list(zip(each.files, each.lengths, strict=True))} for each in segments
            ],
        }
        draft = self.folder / f"{uuid4().hex}.draft"
        with os.fdopen(_create(draft), "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / LIST)
        self.sweep({each.name for each in segments})
        self._remove_those_of_lost_lakes()

    def _remove_those_of_lost_lakes(self) -> None:
        for other in self.folder.parent.glob(f"ledger-*/{LIST}"):
            with suppress(OSError, ValueError, KeyError):
                lake = json.loads(other.read_text(encoding="utf-8"))["lake"]
                if "://" not in lake and not Path(lake).exists():
                    discard(lake)

    def sweep(self, names: set[str]) -> None:
        """Remove the files of segments except those of these names, and unfinished lists that dead processes left."""
        for file in [*self.folder.glob("*.keys"), *self.folder.glob("*.draft")]:
            if file.name not in names:
                file.unlink(missing_ok=True)


def folder_of(lake_uri: str) -> Path:
    """Name the folder of a lake's key index. Raises RuntimeError where the user has no home."""
    return cache_folder() / f"ledger-{hashlib.sha256(whole_address(lake_uri).encode()).hexdigest()[:16]}"


def discard(lake_uri: str) -> None:
    """Remove what this user has of a lake's key index on this machine."""
    with suppress(OSError, RuntimeError):
        folder = folder_of(lake_uri)
        if is_ours(folder) and folder.is_dir():
            (folder / LIST).unlink(missing_ok=True)
            Cache(folder, whole_address(lake_uri), "").sweep(set())


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _kept(read: dict[str, Any]) -> Kept:
    files = read["files"]
    return Kept(str(read["name"]), tuple(name for name, _ in files), tuple(int(length) for _, length in files))
