"""What all tests share: an environment that is put back, a cache of their own, and what the machine must have."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling, Scheduling

from evalake.core.files import CACHE, make_private
from evalake.server.local.server import WAIT_SECONDS, template
from tests.environment import environment_kept

pytest_plugins = ["tests.servers.fixtures"]

REAL_DATA = "EVALAKE_REAL_DATA"
# Where several processes share the files, these go to one of them each, which starts their servers once.
TOGETHER = (
    "e2e/dashboard/",
    "e2e/test_(busy_server|canary|flow_run_page|interrupt|recover|stop|takeover)",
    "e2e/test_(dask|observability|suspend)",
    "integration/server/(scoring/test_(events|routes|scorings|statistics)|test_(access_control|app|hosts|limits|replay))",
    "integration/server/viewer/",
)

# Properties assert values, not times: a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Have tests, and all that they start, keep what they can make again in a folder of their own.

    A server that a command starts has ten minutes, since a busy machine stalls. One thread for each Delta engine is
    enough, since several processes of tests share the machine.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
    os.environ.setdefault(WAIT_SECONDS, "600")
    # A script's background job ignores Ctrl-C, and so would all that tests start in order to interrupt it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = TemporaryDirectory(prefix="evalake-tests-")
    config.add_cleanup(folder.cleanup)
    there = template()  # of a Prefect database, which takes seconds to make
    os.environ[CACHE] = folder.name
    os.environ["XDG_CONFIG_HOME"] = str(Path(folder.name) / "config")  # else a developer's own suites are tested, too
    if there.is_file():
        make_private(template().parent)
        shutil.copyfile(there, template())


class _Together(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        alone = super()._split_scope(nodeid)
        return str(next((files for files in TOGETHER if re.match(f"tests/{files}", nodeid)), alone))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Share the tests out by file, but for those that stay together."""
    return _Together(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def environment_put_back() -> Iterator[None]:
    """Put the environment back after each test: `evalake.run` prepares its process, and locks the servers it starts."""
    with environment_kept():
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that EVALAKE_REAL_DATA names; the tests that read it are skipped where it is not set."""
    if REAL_DATA not in os.environ:
        pytest.skip(f"reads real data: name its folder with {REAL_DATA}")
    folder = Path(os.environ[REAL_DATA])
    assert folder.is_dir(), f"{REAL_DATA} names {folder}, which is no folder"
    return folder
