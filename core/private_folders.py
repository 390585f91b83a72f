"""Folders for the user alone, outside of any lake, where others may be able to write: the user's cache and state."""

import os
from contextlib import suppress
from pathlib import Path

CACHE = "XDG_CACHE_HOME"


def cache_folder() -> Path:
    """Return where evalake keeps what it can make anew. Raises RuntimeError where the user has no home."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache") / "evalake"


def is_ours(place: Path) -> bool:
    """Whether a file or folder of evalake's, and the folder that it is in, are this user's, as far as they are there.

    What others have put where this user's should be is not believed, nor written into.
    """
    with suppress(FileNotFoundError):  # neither is what is in a folder that is not there
        for each in (place.parent, place):
            if {each.lstat().st_uid, each.stat().st_uid} != {os.geteuid()}:
                return False
    return True


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone, whatever the umask lets others do.

    Who may write above it could put a folder of his own in its place.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
