"""`evalake check` as a user runs it: exit codes 0, 1 and 3, and what it says of tables and snapshots."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, SAMPLES
from evalake.storage.lake import Lake
from tests.integration.cli.command import evalake_here
from tests.integration.storage.foreign_snapshot import foreign_snapshot
from tests.integration.storage.recorded_lake import lake_of_one_run


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one imported run."""
    return lake_of_one_run(tmp_path_factory.mktemp("imported"), 6)


@pytest.fixture
def lake(imported: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    return Lake(str(shutil.copytree(imported, tmp_path / "lake")))


def test_the_command_exits_with_one_and_says_what_to_mend(lake: Lake, tmp_path: Path) -> None:
    done = evalake_here("check", "--lake", lake.uri, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["healthy"] is True
    assert [proof["outcome"] for proof in json.loads(done.stdout)["snapshots"]] == ["proved"]
    docs = tmp_path / json.loads(done.stdout)["data_docs"]
    assert "all in order" in docs.read_text(encoding="utf-8")
    gone = Path(lake.open(SAMPLES).file_uris()[0])
    gone.unlink()
    done = evalake_here("check", "--lake", lake.uri, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "samples: 1 found" in done.stdout
    assert "to mend: restore the files from a backup" in done.stdout
    assert done.stdout.splitlines()[-1] == f"data docs: {docs.relative_to(tmp_path)}"
    assert "restore the files from a backup" in docs.read_text(encoding="utf-8")


def test_a_rule_that_only_warns_is_said_and_is_no_failure(lake: Lake, tmp_path: Path) -> None:
    odd = {"replicate": 9, "input_tokens": 5, "cached_input_tokens": 7}
    calls = lake.frame(CALLS).head(1).collect()
    row = calls.with_columns(pl.lit(value, calls.schema[name]).alias(name) for name, value in odd.items())
    write_deltalake(lake.location(CALLS), row.to_arrow(), mode="append")
    done = evalake_here("check", "--lake", lake.uri, "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    (table,) = [each for each in said["tables"] if each["table"] == "calls"]
    assert (table["state"], said["state"], said["healthy"], done.returncode) == ("warning", "warning", True, 0)
    assert "(cached_within_input)" in " ".join(table["warnings"])
    assert "warning" in (tmp_path / said["data_docs"]).read_text(encoding="utf-8")
    kept = lake.frame(CONTRACT_CHECKS).filter(table_name="calls", rule_id="cached_within_input", passed=False).collect()
    assert {*kept["severity"]} == {"warning"}


def test_what_was_proved_before_is_counted_and_all_is_proved_anew_where_that_is_asked_for(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = json.loads(evalake_here("check", "--lake", lake.uri, "--json", folder=tmp_path).stdout)
    assert sum(table["files_proved_before"] for table in first["tables"]) == 0
    again = evalake_here("check", "--lake", lake.uri, folder=tmp_path)
    files = sum(table["files"] for table in first["tables"])
    lines = again.stdout.splitlines()
    assert lines[0].startswith("checking ")
    assert lines[0].endswith(" of them proved before")
    (of_before,) = [line for line in lines if line.startswith("proved before: ")]
    assert "1 of 1 snapshots (--all proves all again)" in of_before
    assert int(of_before.split()[2]) >= files
    assert max(map(len, lines[:-1])) <= 80
    anew = evalake_here("check", "--lake", lake.uri, "--all", "--json", folder=tmp_path)
    assert anew.returncode == 0
    assert [proof["proved_before"] for proof in json.loads(anew.stdout)["snapshots"]] == [False]


def test_data_docs_that_cannot_be_written_say_nothing_of_the_lake(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = evalake_here("check", "--lake", lake.uri, "--out", "file", folder=tmp_path)
    assert (done.returncode, "data docs:" in done.stdout) == (0, False)
    assert "evalake: cannot write the report to file" in done.stderr


def test_the_command_exits_with_three_where_nothing_is_wrong_but_a_snapshot_was_not_recomputed(
    lake: Lake, tmp_path: Path
) -> None:
    foreign = foreign_snapshot(lake)
    done = evalake_here("check", "--lake", lake.uri, folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert "metric_snapshots: ok" in done.stdout
    assert "snapshots: 1 proved, 0 wrong, 1 not recomputed" in done.stdout
    assert f"not recomputed: {foreign[:12]}: it was made with other versions" in done.stdout
