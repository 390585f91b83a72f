"""The servers that `evalake up` keeps for a lake, and the file by which every command of the same user finds them.

The file holds passwords, so it is the user's alone, and it never lies in the lake. Whether the servers still run is
told by a lock that their supervisor holds until it ends, however it ends.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from core.default_lake import whole_address
from core.errors import EvalakeError
from core.private_folders import is_ours, make_private

STATE = "XDG_STATE_HOME"
WARM = "warm"  # the socket of the process that carries out commands, beside the file
ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"
# A worker whose server is busy (SQLite's lock) asks again after 2, 4, 8 … 256 seconds. With Prefect's own five times it
# outlasts one minute: then a run that it was about to start is Crashed for good, or the worker ends.
PATIENCE = {"PREFECT_CLIENT_MAX_RETRIES": "8"}


@dataclass(frozen=True, kw_only=True)
class Background:
    """What runs for a lake: addresses, what lets one in, and the process to end."""

    lake: str
    pid: int
    prefect: str  # the address of its API
    password: str  # user:password of the Prefect server
    pages: str  # the address of `evalake serve`
    token: str  # that `evalake serve` asks for
    pools: tuple[str, ...]  # that have a worker here

    @property
    def prefect_pages(self) -> str:
        """Where Prefect's own pages are."""
        return self.prefect.removesuffix("/api")

    @property
    def link(self) -> str:
        """The address of the pages that lets its reader in."""
        return f"{self.pages}/#token={self.token}"

    def use(self) -> None:
        """Have Prefect use this server, here and in processes that are started from now on."""
        os.environ[ADDRESS], os.environ[PASSWORD] = self.prefect, self.password


def folder_of(lake: str) -> Path:
    """Where the state of a lake's servers is kept, by the lake's whole address."""
    state = Path(os.environ.get(STATE) or Path.home() / ".local" / "state")
    return state / "evalake" / hashlib.sha256(whole_address(lake).encode()).hexdigest()[:16]


def make_folder_of(lake: str) -> Path:
    """Make where the state of a lake's servers is kept. Raises EvalakeError where somebody else has made it."""
    folder = folder_of(lake)
    if not is_ours(folder):
        raise EvalakeError(f"{folder} or the folder above it is another user's: name another place by {STATE}")
    make_private(folder)
    return folder


def find(lake: str) -> Background | None:
    """The servers that run for a lake; None where there are none.

    Raises EvalakeError where the file that tells of them is not one of ours.
    """
    file = folder_of(lake) / "up.json"
    try:
        if not is_running(lake):
            return None
        read = json.loads(file.read_text(encoding="utf-8"))
        return Background(**{**read, "pools": tuple(read["pools"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvalakeError(f"{file} cannot be read: end its servers with `evalake down`, and delete it") from error


def is_running(lake: str) -> bool:
    """Whether a supervisor of this lake runs, be it that its servers have not started yet."""
    if not is_ours(folder_of(lake)):
        return False
    try:
        lock = (folder_of(lake) / "lock").open("rb")
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
    """Be the one supervisor of a lake; yields the folder of its state, which is this user's alone.

    Raises EvalakeError where there is one already, or where somebody else has made the folder.
    """
    folder = make_folder_of(lake)
    folder.chmod(0o700)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EvalakeError(f"servers of the lake {lake} are starting or running already: evalake status") from error
        try:
            yield folder
        finally:
            for name in ("up.json", WARM):
                (folder / name).unlink(missing_ok=True)


def tell(folder: Path, background: Background) -> None:
    """Let commands find the servers. A reader never sees half of the file."""
    draft = folder / "up.json.draft"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(background), file)
    draft.replace(folder / "up.json")
