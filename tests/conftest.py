"""What all tests share, and which of them are left out where something that they need is missing."""

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from xdist.scheduler import LoadFileScheduling

from evalake.cli.environment import DEFAULTS
from evalake.core.files import CACHE, make_private
from evalake.server.local.database import template
from evalake.server.local.server import WAIT_SECONDS
from evalake.storage.sql.landlock import version
from tests.environment import environment_kept
from tests.servers import chromium, evm, postgresql
from tests.servers.copies import end_fork_servers

pytest_plugins = ["tests.servers.fixtures", "tests.rerun"]


class Need(NamedTuple):
    """What the tests that use a fixture need besides Python packages, and how it comes there."""

    name: str
    is_there: Callable[[], bool]
    how: str


NAMED_FOLDER = "EVALAKE_REAL_DATA"
REAL_DATA = "real_data"
ANALYZE = "systemd-analyze"
WITH_TCP = 4  # the version of Landlock's interface
NEEDS = {
    REAL_DATA: Need("real data", lambda: bool(os.environ.get(NAMED_FOLDER)), f"name its folder with {NAMED_FOLDER}"),
    "chromium": Need("Chromium", lambda: chromium.chromium() is not None, "apt-get install chromium-headless-shell"),
    "postgresql": Need("PostgreSQL", lambda: postgresql.program("initdb") is not None, "apt-get install postgresql"),
    "systemd_analyze": Need(ANALYZE, lambda: shutil.which(ANALYZE) is not None, "apt-get install systemd"),
    "landlock": Need("Landlock with TCP", lambda: version() >= WITH_TCP, "a Linux kernel from 6.7 on"),
    "evm": Need("Node.js and an EVM", evm.is_installed, "apt-get install nodejs npm; make test"),
}
# Their tests share servers and browsers, which start once where one process has all of the folder.
WHOLE_FOLDERS = ("tests/e2e/dashboard/", "tests/integration/server/viewer/", "tests/integration/server/")
# What takes minutes, or waits, is begun first: last, it would leave processors idle when little else is left.
LONG = (
    *WHOLE_FOLDERS,
    "tests/e2e/chaos/",
    "tests/integration/models/",
    "tests/e2e/test_watched.py",
    "tests/e2e/test_dask.py",
    "tests/e2e/test_deploy.py",
    "tests/e2e/test_secrets.py",
    "tests/e2e/test_suspend.py",
    "tests/e2e/test_up.py",
)
LEFT_OUT = pytest.StashKey[dict[str, list[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Have tests, and all that they start, keep what they can make anew in a folder of their own; spare processor.

    Several processes of tests share two cores: a second thread of each one's Delta engine only made them wait for each
    other. A server that Prefect starts by itself has as long as a command gives it, not twenty seconds.
    """
    os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
    os.environ.setdefault(WAIT_SECONDS, DEFAULTS[WAIT_SECONDS])
    # A script's background job ignores Ctrl-C, and so would all that tests start in order to interrupt it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(50_000, 10, 10)  # as the command has it
    config.add_cleanup(gc.unfreeze)
    config.add_cleanup(end_fork_servers)
    folder = TemporaryDirectory(prefix="evalake-tests-")
    config.add_cleanup(folder.cleanup)
    there = template()  # of a Prefect database, which takes seconds to make
    os.environ[CACHE] = folder.name
    if there.is_file():
        make_private(template().parent)
        shutil.copyfile(there, template())


@pytest.fixture(autouse=True)
def environment_put_back() -> Iterator[None]:
    """Put the environment back after each test: `evalake.run` prepares its process, and locks the servers it starts."""
    with environment_kept():
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that EVALAKE_REAL_DATA names."""
    folder = Path(os.environ[NAMED_FOLDER])
    assert folder.is_dir(), f"{NAMED_FOLDER} names {folder}, which is no folder"
    return folder


@pytest.fixture(scope="session")
def landlock() -> None:
    """The kernel confines a process, also from connections. A test that uses it is left out where it cannot."""
    assert version() >= WITH_TCP, "the kernel has no Landlock that knows TCP"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that use a fixture for which the machine lacks something; in CI, only those of real data."""
    optional = [REAL_DATA] if os.environ.get("CI") else list(NEEDS)
    missing = [fixture for fixture in optional if not NEEDS[fixture].is_there()]
    left_out: dict[str, list[str]] = {fixture: [] for fixture in missing}
    kept, deselected = [], []
    for item in items:
        lacking = next((fixture for fixture in missing if fixture in getattr(item, "fixturenames", ())), None)
        if lacking is None:
            kept.append(item)
        else:
            deselected.append(item)
            left_out[lacking].append(item.nodeid)
    config.stash[LEFT_OUT] = left_out
    config.hook.pytest_deselected(items=deselected)
    gc.freeze()  # modules and tests stay to the end
    items[:] = sorted(kept, key=lambda item: not item.nodeid.startswith(LONG))


class FilesAndFolders(LoadFileScheduling):
    """Hands each process whole files, and of some folders all files."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((folder for folder in WHOLE_FOLDERS if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndFolders | None:
    """Take it where whole files are asked for."""
    return FilesAndFolders(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was left out to the process that writes the summary, where it is another one."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what was left out from one of the processes; it is the same in each."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests were left out, and what they need: by name, but for real data, which nobody misses by mistake."""
    for fixture, tests in config.stash.get(LEFT_OUT, {}).items():
        if not tests:
            continue
        need = NEEDS[fixture]
        terminalreporter.section(f"left out: {len(tests)} tests that need {need.name} ({need.how})", sep="-")
        if fixture != REAL_DATA:
            for name in tests:
                terminalreporter.line(name)
