"""`evalake snapshots` lists, and `evalake snapshots verify ID` proves one: three exit codes."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import METRIC_SNAPSHOTS
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.storage.foreign_snapshot import foreign_snapshot


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The lake that the command takes without being told, with one imported run."""
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(6)))
    lake = Lake(str(tmp_path / "lake"))
    import_recorded(lake, suite("command_guard"), [tmp_path / "results.jsonl"])
    return lake


def test_a_snapshot_is_proved_wrong_or_not_recomputed(lake: Lake, tmp_path: Path) -> None:
    snapshot_id = find_snapshot(lake)["snapshot_id"]
    foreign = foreign_snapshot(lake)
    done = evalake_here("snapshots", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert snapshot_id[:12] in done.stdout

    done = evalake_here("snapshots", "verify", snapshot_id[:12], folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"snapshot {snapshot_id[:12]}: proved\n")

    done = evalake_here("snapshots", "verify", foreign, "--lake", lake.uri, "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["snapshot_id"], said["outcome"]) == (3, foreign, "not recomputed")
    assert "other versions" in said["reason"]

    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"n": "n + 1"})
    done = evalake_here("snapshots", "verify", snapshot_id, folder=tmp_path)
    assert done.returncode == 1
    assert "wrong: differs from its recomputation" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("verify", "nothing"), "nothing"),
        (("verify",), "ID"),
        (("--lake", "x", "verify", "nothing"), "--lake"),
        (("prove",), "prove"),
    ],
)
def test_a_mistake_is_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], named: str) -> None:
    done = evalake_here("snapshots", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
