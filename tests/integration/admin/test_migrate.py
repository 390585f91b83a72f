"""Lakes that older versions wrote are brought forward whole: read, measured, reported, and run on for nothing."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.maintain import migrate, name_newest_snapshots
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, RUNS, SNAPSHOTS
from evalake.contracts.tables.people import HUMAN_LABELS
from evalake.storage.lake import Lake, constraints
from evalake.storage.landing import land
from evalake.storage.migrations import pending
from evalake.storage.snapshots import Snapshot
from evalake.suites.registry import all_contracts
from tests.golden.lakes import material
from tests.golden.lakes.archives import ARCHIVES, unpack
from tests.integration.cli.command import ROOT, evalake_here
from tests.integration.storage.rows import run

MIGRATE = [sys.executable, "-m", "evalake.cli", "maintain", "--migrate"]
UNTOUCHED = "as-migrated"
FORMER = {"judge_versions": "judge_epochs"}


class Place:
    """A folder with a golden lake as it was written, and the samples that it was made from."""

    def __init__(self, folder: Path, archive: Path, prefect_api: str) -> None:
        self.folder, self.lake, self.prefect_api = folder, Lake(str(folder / "lake")), prefect_api
        unpack(archive, folder)
        material.write(folder)

    def evalake(self, *arguments: object, code: int = 0) -> str:
        """Run the command and return what it printed."""
        done = evalake_here(*arguments, folder=self.folder, PREFECT_API_URL=self.prefect_api)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def raw(self, name: str) -> pl.DataFrame:
        """The rows of a table as they are stored."""
        return pl.scan_delta(DeltaTable(str(self.folder / "lake" / name))).collect()

    def everything(self) -> dict[str, pl.DataFrame]:
        """The rows of every table, as the contracts of today have them."""
        return {contract.table: self.lake.frame(contract).collect() for contract in all_contracts()}


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.xz"))
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, prefect_api: str) -> Place:
    """The lake as an older version wrote it; nobody changes it."""
    return Place(tmp_path_factory.mktemp("written"), request.param, prefect_api)


@pytest.fixture(scope="module")
def migrated(written: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A copy of it, migrated by the command."""
    place = Place.__new__(Place)
    place.folder = tmp_path_factory.mktemp("migrated") / "copy"
    shutil.copytree(written.folder, place.folder)
    place.lake, place.prefect_api = Lake(str(place.folder / "lake")), written.prefect_api
    planned = place.evalake("maintain", "--migrate", "--dry-run")
    assert "human_labels" in planned
    assert pending(place.lake, all_contracts()) == pending(written.lake, all_contracts())
    assert "migrated" in place.evalake("maintain", "--migrate")
    shutil.copytree(place.lake.uri, place.folder.parent / UNTOUCHED)  # for others go on with the copy
    return place


def test_a_golden_lake_is_small_and_has_rows_in_its_tables(written: Place) -> None:
    assert all(archive.stat().st_size <= 300_000 for archive in ARCHIVES)
    tables = [folder.name for folder in Path(written.lake.uri).iterdir()]
    assert len(tables) >= 17
    assert all(written.raw(table).height for table in tables)


def test_an_older_lake_says_in_one_sentence_what_to_do(written: Place) -> None:
    before = log_entries(Path(written.lake.uri))
    for refused in (
        ("run", "command_guard", "--limit", "1"),
        ("import", "verdicts.jsonl", "--suite", "command_guard"),
        ("import", "sessions.jsonl", "--suite", "session_review"),
        ("maintain",),
        ("sql", "select * from human_labels"),
    ):
        said = written.evalake(*refused, code=1)
        (line,) = [line for line in said.splitlines() if line.startswith("evalake:")]
        assert "human_labels" in line
        assert "evalake maintain --migrate" in line
    assert (
        log_entries(Path(written.lake.uri)) == before
    )  # not even that a run begins, which would hold up the migration
    unchanged = next(each.table for each in all_contracts() if not each.changes)
    written.evalake("sql", f"select count(*) from {unchanged}")
    found = written.evalake("check", code=1)
    assert "human_labels: 1 found" in found
    assert "judge_versions: 1 found" in found
    assert "schema version 1" in found


def test_every_row_is_there_and_every_answer_a_person_gave(written: Place, migrated: Place) -> None:
    assert pending(migrated.lake, all_contracts()) == []
    for table, rows in migrated.everything().items():
        name = FORMER.get(table, table)
        if table != "human_labels" and (Path(written.lake.uri) / name).exists():
            before = written.raw(name)
            before = before.rename({"epoch": "version"}) if "epoch" in before.columns else before
            common = [column for column in rows.columns if column in before.columns]
            assert rows.select(common).sort(common).equals(before.select(common).sort(common)), table
    before = written.raw("human_labels")
    answers = migrated.lake.frame(HUMAN_LABELS).collect()
    for question in ("verdict", "target_found", "classification", "score", "root_cause_score", "fix_score"):
        given = answers.filter(question=question)
        value = pl.coalesce(pl.col("answer").replace({"yes": "true", "no": "false"}), pl.col("score").cast(pl.String))
        mine, theirs = ["sample_hash", "annotator", "finding_id"], ["sample_hash", "labeller", "finding_id"]
        now = sorted(given.select(*mine, value).rows(), key=repr)
        then = before.filter(pl.col(question).is_not_null()).select(*theirs, pl.col(question).cast(pl.String)).rows()
        assert now == sorted(then, key=repr)
    assert answers.height == answers["label_id"].n_unique()


def test_a_migrated_lake_is_sound_and_can_be_read_in_every_way(written: Place, migrated: Place) -> None:
    checked = migrated.evalake("check", code=3)  # nothing is wrong, and snapshots are of older metrics
    assert "found" not in checked
    assert "0 wrong" in checked
    runs = json.loads(migrated.evalake("runs", "--format", "json"))
    assert {run["suite"] for run in runs} == {"command_guard", "solidity_audit", "session_review"}
    labelled = next(run for run in runs if run["suite"] == "solidity_audit")
    assert "judge_human_agreement" in migrated.evalake("metrics", "--all", "--snapshot", labelled["snapshot_id"])
    migrated.evalake("report", labelled["run_id"])
    version = DeltaTable(str(Path(written.lake.uri) / "human_labels")).version()
    counted = ("sql", "select count(*) as n, count(distinct question) as q from human_labels", "--format", "json")
    now = migrated.evalake(*counted)
    assert migrated.evalake(*counted, "--at", f"human_labels={version}") == now
    first = json.loads(migrated.evalake(*counted, "--at", "human_labels=0"))
    assert first == [{"n": 0, "q": 0}]
    migrated.evalake("sql", "select version from judge_versions", "--at", "judge_epochs=0")


def test_a_run_on_top_asks_only_what_has_changed(migrated: Place) -> None:
    calls = migrated.lake.frame(CALLS).collect().height
    judged = 2  # contracts, by a judge whose prompt has a rubric since; their audits are in the ledger
    reviewed = 6  # turns about three sessions, under criteria that are newer than the archive
    for suite, dataset, models, made in (
        ("command_guard", "commands.jsonl", ("--models", "baseline/always-block"), 0),
        ("session_review", "sessions.jsonl", (), reviewed),
        ("solidity_audit", "contracts.jsonl", ("--models", "baseline/solidity-patterns"), judged),
    ):
        done: dict[str, Any] = json.loads(migrated.evalake("run", suite, "--dataset", dataset, *models, "--json"))
        assert done["calls"]["made"] == made
        assert (done["calls"]["from_ledger"] > 0) == (suite != "session_review")
        assert done["snapshot_id"]
    assert migrated.lake.frame(CALLS).collect().height == calls + judged + reviewed


def test_killed_whenever_it_has_committed_something_it_is_taken_up_and_each_step_is_made_once(
    written: Place, migrated: Place, tmp_path: Path
) -> None:
    unbroken, folder = migrated.folder.parent / UNTOUCHED, tmp_path / "lake"
    shutil.copytree(Path(written.lake.uri), folder)
    lake = Lake(str(folder))
    begin, end = len(log_entries(folder)), len(log_entries(unbroken))
    for commits in (begin + 1, (begin + 2 * end) // 3):
        killed_at(folder, commits)
    assert pending(lake, all_contracts())
    shutil.copytree(folder, tmp_path / "half" / "lake")  # since a check is a row of the lake, too
    checked = evalake_here("check", folder=tmp_path / "half")
    assert (checked.returncode, "schema version" in checked.stdout) == (1, True), checked.stdout + checked.stderr
    said = evalake_here("maintain", "--migrate", folder=tmp_path)
    assert said.returncode == 0, said.stderr
    assert pending(lake, all_contracts()) == []
    assert log_entries(folder) == log_entries(unbroken)  # no step twice, none left out
    for contract in all_contracts():
        rows, expected = lake.frame(contract).collect(), Lake(str(unbroken)).frame(contract).collect()
        assert rows.sort(rows.columns).equals(expected.sort(rows.columns)), contract.table


def test_killed_after_its_last_schema_it_still_adds_the_constraints(migrated: Place, tmp_path: Path) -> None:
    shutil.copytree(Path(migrated.lake.uri), tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    last = [contract for contract in all_contracts() if contract.changes][-1]
    held = constraints(lake.open(last))
    for name in sorted(held)[1:]:
        lake.open(last).alter.drop_constraint(name)
    assert migrate(lake) == []
    assert constraints(lake.open(last)) == held


def log_entries(lake: Path) -> list[str]:
    """The commits to all tables of a lake."""
    return sorted(str(file.relative_to(lake)) for file in lake.glob("*/_delta_log/*.json"))


def count_commits(lake: Path) -> int:
    """How many `log_entries` there are, for who asks again and again."""
    logs = [table / "_delta_log" for table in lake.iterdir()]
    return sum(file.suffix == ".json" for log in logs if log.is_dir() for file in log.iterdir())


def killed_at(lake: Path, commits: int) -> None:
    """Migrate by the command, and kill it by SIGKILL as soon as the lake has that many commits."""
    with subprocess.Popen([*MIGRATE, "--lake", str(lake)], env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        while count_commits(lake) < commits:
            with pytest.raises(subprocess.TimeoutExpired):  # it has not ended before it could be killed
                process.wait(0.02)
        process.kill()


def test_a_run_that_an_older_evalake_measured_again_names_its_newest_snapshot(tmp_path: Path) -> None:
    lake, told = Lake(str(tmp_path / "lake")), {"warnings": [], "pinned_versions": "{}", "options": "{}"}
    first, again = (Snapshot("r", "quiz", {}, "0" * 64, version, 1, {}, "1") for version in ("1", "2"))
    for day, made in enumerate((first, again), start=1):
        row = {**vars(made), "snapshot_id": made.id, "created_at": datetime(2026, 1, day, tzinfo=UTC), **told}
        land(lake, SNAPSHOTS, conform([row], SNAPSHOTS))
    rows = [{**run("r", "quiz", datetime(2026, 1, 1, tzinfo=UTC)), "snapshot_id": first.id}]
    land(lake, RUNS, conform(rows, RUNS))
    name_newest_snapshots(lake)
    assert lake.frame(RUNS).collect()["snapshot_id"].item() == again.id
