"""Folders for the user alone, outside of any lake, where others may be able to write: the user's cache and state."""

import os
from contextlib import suppress
from pathlib import Path

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
