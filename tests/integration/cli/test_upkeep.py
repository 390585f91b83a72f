"""Commands that keep a lake: forgetting, maintenance, rescoring, roadmaps and snapshots."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, METRIC_SNAPSHOTS, SAMPLES
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Copy, Imported
from tests.integration.storage.foreign_snapshot import foreign_snapshot
from tests.integration.storage.recorded_lake import lake_of_one_run
from tests.integration.storage.rows import call

# `evalake forget`: first what it would do, then what it did, and nothing that was not named.


def test_a_dry_run_tells_what_is_then_gone(recorded_results: Imported, copy: Copy) -> None:
    lake = copy(recorded_results)
    (sample,) = lake.query("select sample_hash from samples where sample_id = 's3'")
    words = ("forget", "--sample", sample["sample_hash"])
    planned = evalake_here(*words, "--dry-run", folder=lake.folder)
    assert planned.returncode == 0, planned.stderr
    assert "1 sample would be forgotten" in planned.stdout
    assert "nothing was changed" in planned.stdout
    assert lake.query("select count(*) as n from samples") == [{"n": 40}]
    done = json.loads(evalake_here(*words, "--json", folder=lake.folder).stdout)
    assert (done["samples"], done["rows"]["command_guard_results"]) == (1, 1)
    assert lake.query("select count(*) as n from command_guard_results") == [{"n": 39}]


def test_who_names_nothing_forgets_nothing(tmp_path: Path) -> None:
    done = evalake_here("forget", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


# `evalake maintain`: replies that look like failures are asked again.


def test_suspicious_replies_are_listed_in_eighty_columns_and_withdrawn_by_kind(tmp_path: Path) -> None:
    run_id = "run-3f1c2ab45d6e"
    ledger.append(Lake(str(tmp_path / "lake")), [call(n, response="", run_id=run_id) for n in range(3)])
    listed = evalake_here("maintain", "--suspicious", folder=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert all(word in listed.stdout for word in (run_id, "provider/model", "empty", "3 replies look like failures"))
    assert max(map(len, listed.stdout.splitlines()[:2])) <= 80  # the sentence below the table wraps
    told = json.loads(evalake_here("maintain", "--suspicious", "--json", folder=tmp_path).stdout)
    assert told["suspicious"] == [{"run_id": run_id, "model": "provider/model", "kind": "empty", "replies": 3}]
    refused = evalake_here("maintain", "--ask-again", "odd", folder=tmp_path)
    assert (refused.returncode, "choose one of error-finish" in refused.stderr) == (2, True)
    assert evalake_here("maintain", "--run", run_id, folder=tmp_path).returncode == 2
    planned = evalake_here("maintain", "--ask-again", "empty", "--run", run_id, "--dry-run", folder=tmp_path)
    assert "3 replies would be withdrawn" in planned.stdout
    done = evalake_here("maintain", "--ask-again", "empty", "--run", run_id, "--json", folder=tmp_path)
    assert json.loads(done.stdout)["withdrawn"] == 3
    assert "no reply looks like a failure" in evalake_here("maintain", "--suspicious", folder=tmp_path).stdout


# `evalake rescore`: from the ledger alone, the same snapshot.


def test_rescoring_gives_the_same_snapshot_from_the_ledger_alone(imported: Imported) -> None:
    done = evalake_here("rescore", imported.run, "--json", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    rows = {"landed": 0, "already_present": 40, "quarantined": 0}
    assert json.loads(done.stdout)["rows"] == rows
    values = "select metric, slice, slice_value, value, n from metric_snapshots where snapshot_id = '{}' order by all"
    before, after = (
        imported.query(values.format(i)) for i in (imported.said["snapshot_id"], json.loads(done.stdout)["snapshot_id"])
    )
    assert before == after


# `evalake roadmap`: what it prints, its JSON, and that a rerun finds the same.


def test_it_prints_the_themes_by_cost_and_writes_the_page(tmp_path: Path, prefect_api: str) -> None:
    land_scores(Lake(str(tmp_path / "lake")), ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    server = {"PREFECT_API_URL": prefect_api, "COLUMNS": "80"}
    done = evalake_here("roadmap", "--out", "pages", folder=tmp_path, **server)
    assert done.returncode == 0, done.stderr
    assert "Tool roadmap: 2 scored samples, grouped by the words in common" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.index("x-ray") < done.stdout.index("y-scan")
    (page,) = (tmp_path / "pages").glob("*/roadmap.html")
    assert f"report: pages/{page.parent.name}/roadmap.html" in done.stdout
    again = json.loads(evalake_here("roadmap", "--json", folder=tmp_path, **server).stdout)
    assert again == json.loads(page.with_suffix(".json").read_text())


def test_an_empty_lake_is_told(tmp_path: Path, prefect_api: str) -> None:
    done = evalake_here("roadmap", folder=tmp_path, PREFECT_API_URL=prefect_api)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no scored results of session_review with gaps" in done.stderr


# `evalake snapshots` lists, and `evalake snapshots verify ID` proves one: three exit codes.


def test_a_snapshot_is_proved_wrong_or_not_recomputed(small: Lake, tmp_path: Path) -> None:
    snapshot_id = find_snapshot(small)["snapshot_id"]
    foreign = foreign_snapshot(small)
    done = evalake_here("snapshots", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert snapshot_id[:12] in done.stdout

    done = evalake_here("snapshots", "verify", snapshot_id[:12], folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"snapshot {snapshot_id[:12]}: proved\n")

    done = evalake_here("snapshots", "verify", foreign, "--lake", small.uri, "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["snapshot_id"], said["outcome"]) == (3, foreign, "not recomputed")
    assert "other versions" in said["reason"]

    DeltaTable(small.location(METRIC_SNAPSHOTS)).update(updates={"n": "n + 1"})
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


# `evalake check` as a user runs it: exit codes 0, 1 and 3, and what it says of tables and snapshots.


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one imported run."""
    return lake_of_one_run(tmp_path_factory.mktemp("imported"), 6)


@pytest.fixture
def small(one_run: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    return Lake(str(shutil.copytree(one_run, tmp_path / "lake")))


def test_the_command_exits_with_one_and_says_what_to_mend(small: Lake, tmp_path: Path) -> None:
    done = evalake_here("check", "--lake", small.uri, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["healthy"] is True
    assert [proof["outcome"] for proof in json.loads(done.stdout)["snapshots"]] == ["proved"]
    docs = tmp_path / json.loads(done.stdout)["data_docs"]
    assert "all in order" in docs.read_text(encoding="utf-8")
    gone = Path(small.open(SAMPLES).file_uris()[0])
    gone.unlink()
    done = evalake_here("check", "--lake", small.uri, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "samples: 1 found" in done.stdout
    assert "to mend: restore the files from a backup" in done.stdout
    assert done.stdout.splitlines()[-1] == f"data docs: {docs.relative_to(tmp_path)}"
    assert "restore the files from a backup" in docs.read_text(encoding="utf-8")


def test_a_rule_that_only_warns_is_said_and_is_no_failure(small: Lake, tmp_path: Path) -> None:
    odd = {"replicate": 9, "input_tokens": 5, "cached_input_tokens": 7}
    calls = small.frame(CALLS).head(1).collect()
    row = calls.with_columns(pl.lit(value, calls.schema[name]).alias(name) for name, value in odd.items())
    write_deltalake(small.location(CALLS), row.to_arrow(), mode="append")
    done = evalake_here("check", "--lake", small.uri, "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    (table,) = [each for each in said["tables"] if each["table"] == "calls"]
    assert (table["state"], said["state"], said["healthy"], done.returncode) == ("warning", "warning", True, 0)
    assert "(cached_within_input)" in " ".join(table["warnings"])
    assert "warning" in (tmp_path / said["data_docs"]).read_text(encoding="utf-8")
    kept = (
        small.frame(CONTRACT_CHECKS).filter(table_name="calls", rule_id="cached_within_input", passed=False).collect()
    )
    assert {*kept["severity"]} == {"warning"}


def test_what_was_proved_before_is_counted_and_all_is_proved_anew_where_that_is_asked_for(
    small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = json.loads(evalake_here("check", "--lake", small.uri, "--json", folder=tmp_path).stdout)
    assert sum(table["files_proved_before"] for table in first["tables"]) == 0
    again = evalake_here("check", "--lake", small.uri, folder=tmp_path)
    files = sum(table["files"] for table in first["tables"])
    lines = again.stdout.splitlines()
    assert lines[0].startswith("checking ")
    assert lines[0].endswith(" of them proved before")
    (of_before,) = [line for line in lines if line.startswith("proved before: ")]
    assert "1 of 1 snapshots (--all proves all again)" in of_before
    assert int(of_before.split()[2]) >= files
    assert max(map(len, lines[:-1])) <= 80
    whole = evalake_here("check", "--lake", small.uri, "--all", "--json", folder=tmp_path)
    assert whole.returncode == 0
    assert [proof["proved_before"] for proof in json.loads(whole.stdout)["snapshots"]] == [False]


def test_data_docs_that_cannot_be_written_say_nothing_of_the_lake(small: Lake, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = evalake_here("check", "--lake", small.uri, "--out", "file", folder=tmp_path)
    assert (done.returncode, "data docs:" in done.stdout) == (0, False)
    assert "evalake: cannot write the report to file" in done.stderr


def test_the_command_exits_with_three_where_nothing_is_wrong_but_a_snapshot_was_not_recomputed(
    small: Lake, tmp_path: Path
) -> None:
    foreign = foreign_snapshot(small)
    done = evalake_here("check", "--lake", small.uri, folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert "metric_snapshots: ok" in done.stdout
    assert "snapshots: 1 proved, 0 wrong, 1 not recomputed" in done.stdout
    assert f"not recomputed: {foreign[:12]}: it was made with other versions" in done.stdout


def test_tables_that_no_suite_declares_are_named_and_pass_no_check(small: Lake, tmp_path: Path) -> None:
    write_deltalake(f"{small.uri}/toy_results", pl.DataFrame({"toy_id": ["a"]}).to_arrow())
    done = evalake_here("check", "--lake", small.uri, folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert "not checked: toy_results, because no suite here declares it" in done.stdout.splitlines()
    said = json.loads(evalake_here("check", "--lake", small.uri, "--json", folder=tmp_path).stdout)
    assert (said["healthy"], said["state"], said["undeclared"]) == (True, "warning", ["toy_results"])
    assert "Not checked: toy_results" in (tmp_path / said["data_docs"]).read_text(encoding="utf-8")
    maintained = evalake_here("maintain", "--lake", small.uri, folder=tmp_path)
    assert (maintained.returncode, "not maintained: toy_results" in maintained.stdout) == (0, True)
    migrated = evalake_here("maintain", "--migrate", "--lake", small.uri, folder=tmp_path)
    assert "not migrated: toy_results" in migrated.stdout
    assert "not listed: toy_results" in evalake_here("tables", "--lake", small.uri, folder=tmp_path).stderr


def test_a_lake_of_undeclared_tables_alone_cannot_be_checked(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lake" / "toy_results", pl.DataFrame({"toy_id": ["a"]}).to_arrow())
    done = evalake_here("check", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing of the lake" in done.stderr
    assert "toy_results" in done.stderr
