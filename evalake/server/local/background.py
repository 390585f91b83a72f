"""The servers that `evalake up` keeps for a lake, and the file by which every command of the same user finds them.

The file holds passwords, so it is the user's alone, and it never lies in the lake. Whether the servers still run is
told by a lock that their supervisor holds until it ends, however it ends.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from evalake.core.configuration import VIEWER_URL, whole_address
from evalake.core.errors import EvalakeError
from evalake.core.files import STATE, is_ours, lake_folder, make_private, open_private

ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"
# A worker whose server is busy (SQLite's lock) asks again after 2, 4, 8 … 256 seconds. With Prefect's own five times it
# outlasts one minute: then a run that it was about to start is Crashed for good, or the worker ends.
PATIENCE = {"PREFECT_CLIENT_MAX_RETRIES": "8"}


@dataclass(frozen=True, kw_only=True)
class Background:
    """The servers of a lake: their addresses, the password and token for them, and the process to end."""

    lake: str
    pid: int
    prefect: str  # the address of its API
    password: str  # user:password of the Prefect server
    pages: str  # the address of `evalake serve`
    token: str  # that `evalake serve` asks for
    pools: tuple[str, ...]  # that have a worker here

    @property
    def prefect_pages(self) -> str:
        """The address of Prefect's own pages."""
        return self.prefect.removesuffix("/api")

    @property
    def link(self) -> str:
        """The address of the list of runs with the token in it; a lake without sessions has an empty dashboard."""
        return f"{self.pages}/runs#token={self.token}"

    def use(self) -> None:
        """Have Prefect use this server, here and in processes that are started from now on."""
        os.environ[ADDRESS], os.environ[PASSWORD] = self.prefect, self.password
        os.environ.setdefault(VIEWER_URL, self.pages)


def folder_of(lake: str) -> Path:
    """Name the folder in which the state of a lake's servers is kept, by the lake's whole address."""
    return lake_folder(whole_address(lake))


def make_folder_of(lake: str) -> Path:
    """Make the folder for the state of a lake's servers. Raises EvalakeError where another user has made it."""
    folder = folder_of(lake)
    if not is_ours(folder):
        raise EvalakeError(f"{folder} or the folder above it is another user's: name another place by {STATE}")
    make_private(folder)
    return folder


def find(lake: str) -> Background | None:
    """Find the running servers of a lake; None without any.

    Raises EvalakeError where the file that describes them cannot be read.
    """
    file = folder_of(lake) / "up.json"
    try:
        if not is_running(lake):
            return None
        with open_private(file, os.O_RDONLY) as opened:
            read = json.load(opened)
        return Background(**{**read, "pools": tuple(read["pools"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvalakeError(f"{file} cannot be read: end its servers with `evalake down`, and delete it") from error


def are_new(lake: str, seconds: float) -> bool:
    """Tell whether the servers of a lake run, and have been up for less than so many seconds."""
    return find(lake) is not None and time.time() - (folder_of(lake) / "up.json").stat().st_mtime < seconds


def is_running(lake: str) -> bool:
    """Tell whether a supervisor of this lake runs, even if its servers have not started yet."""
    if not is_ours(folder_of(lake)):
        return False
    try:
        lock = open_private(folder_of(lake) / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def held(lake: str) -> Iterator[Path]:
    """Hold the lock of a lake's only supervisor; yields the folder of its state, which is this user's alone.

    Raises EvalakeError where there is a supervisor already, or where another user has made the folder.
    """
    folder = make_folder_of(lake)
    folder.chmod(0o700)
    with open_private(folder / "lock", os.O_RDWR | os.O_CREAT) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EvalakeError(f"servers of the lake {lake} are starting or running already: evalake status") from error
        try:
            _forget_servers(folder)  # of a supervisor that was killed: others may listen at its ports now
            yield folder
        finally:
            _forget_servers(folder)


def _forget_servers(folder: Path) -> None:
    (folder / "up.json").unlink(missing_ok=True)


def lost_supervisor(lake: str) -> int | None:
    """Find the process that keeps servers of a lake, by /proc: also where its state folder is lost or elsewhere."""
    words = b"\0".join([b"-m", b"evalake.server.local.supervisor", whole_address(lake).encode(), b""])
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == os.geteuid() and words in (process / "cmdline").read_bytes():
                return int(process.name)
    return None


def tell(folder: Path, background: Background) -> None:
    """Write the file by which commands find the servers. A reader never sees half of the file."""
    draft = folder / "up.json.draft"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(background), file)
    draft.replace(folder / "up.json")
