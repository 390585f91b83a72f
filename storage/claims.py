"""Claims on calls: of a user's processes on a machine, one at a time asks a call, so that none is paid twice.

A claim is a lock on one byte of a file, at a hash of the call's key. It ends with its process at the latest. The file's
time says when a claim was last taken or ended: a process that stands still is not waited for without end.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterable
from functools import cache

from evalake.core.files import open_state
from evalake.core.hashing import content_hash

Call = tuple[str, int, str]
"""The key of a call: prompt_hash, replicate and endpoint."""

_PRESENCE = 0  # the byte that every process with claims has locked for reading


class Claims:
    """The claims of this process on the calls of one lake."""

    def __init__(self, address: str) -> None:
        with open_state(address, "claims") as file:
            # It stays open, because closing any descriptor of the file would end all locks of the process
            self._file = os.dup(file.fileno())
        self._held: set[int] = set()
        self._changed = threading.Lock()
        fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)

    def take(self, call: Call) -> bool:
        """Claim a call, unless this process or another one has claimed it."""
        place = _place(call)
        with self._changed:
            if place in self._held or not self._is_free(place):
                return False
            self._held.add(place)
            os.utime(self._file)
            return True

    def release(self, calls: Iterable[Call]) -> None:
        """End the claims on calls, where this process has them."""
        with self._changed:
            for place in self._held.intersection(map(_place, calls)):
                self._held.remove(place)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)
            os.utime(self._file)

    def quiet_seconds(self) -> float:
        """Tell for how long no process has taken or ended a claim."""
        return time.time() - os.fstat(self._file).st_mtime

    def are_shared(self) -> bool:
        """Tell whether another process asks calls of this lake, too."""
        with self._changed:
            if not self._is_free(_PRESENCE):
                return True
            fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)
            return False

    def _is_free(self, place: int) -> bool:
        """Lock a byte for this process alone, unless another process has locked it."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # either, by POSIX
            return False
        return True


def _place(call: Call) -> int:
    return int(content_hash(list(call))[:15], 16) + 1


@cache
def claims_of(address: str) -> Claims:
    """Return the claims of this process on the calls of a lake."""
    return Claims(address)
