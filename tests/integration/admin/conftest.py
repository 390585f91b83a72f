"""What tests of jobs share: a healthy lake, to be damaged, and a cache of their own."""

import shutil
from pathlib import Path

import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import CALLS, SAMPLES
from evalake.storage.lake import Lake
from evalake.storage.maintenance import maintain
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for what checks prove."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a run and its snapshot, looked after once."""
    folder = tmp_path_factory.mktemp("healthy")
    for name, samples in (("one", range(6)), ("two", range(6, 12))):
        (folder / f"{name}.jsonl").write_text("\n".join(recorded(n) for n in samples))
    lake = Lake(str(folder / "lake"))
    import_recorded(lake, suite("command_guard"), [folder / "one.jsonl"])
    maintain(lake, [SAMPLES, CALLS])
    import_recorded(lake, suite("command_guard"), [folder / "two.jsonl"])
    return folder / "lake"


@pytest.fixture
def lake(healthy: Path, tmp_path: Path) -> Lake:
    """The healthy lake, to be damaged."""
    return Lake(str(shutil.copytree(healthy, tmp_path / "lake")))
