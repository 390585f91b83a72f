"""`evalake import` and what can be read afterwards: metrics, SQL, listings, report, check, maintain, export."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.command import evalake_here, recorded

LINES = [recorded(n, action="BLOCK" if n % 4 == 0 else "ALLOW") for n in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which forty recorded results have been imported into ./lake."""
    place = tmp_path_factory.mktemp("imported")
    (place / "results.jsonl").write_text("\n".join(LINES) + "\n")
    done = evalake_here("import", "results.jsonl", "--suite", "command_guard", "--json", folder=place)
    assert done.returncode == 0, done.stderr
    (place / "import.json").write_text(done.stdout)
    return place


@pytest.fixture(scope="module")
def imported(folder: Path) -> dict[str, Any]:
    """What the import printed."""
    return json.loads((folder / "import.json").read_text())  # type: ignore[no-any-return]


def test_json_is_one_object_with_the_promised_fields(imported: dict[str, Any]) -> None:
    assert list(imported) == ["run_id", "snapshot_id", "state", "samples", "calls", "rows", "cost_usd", "seconds"]
    assert list(imported["calls"]) == ["made", "from_ledger", "failed"]
    assert imported["rows"] == {"landed": 40, "already_present": 0, "quarantined": 0}
    assert (imported["state"], imported["samples"]) == ("completed", 40)


def test_importing_again_is_the_same_run_and_adds_nothing(folder: Path, imported: dict[str, Any]) -> None:
    again = json.loads(
        evalake_here("import", "results.jsonl", "--suite", "command_guard", "--json", folder=folder).stdout
    )
    assert (again["run_id"], again["snapshot_id"]) == (imported["run_id"], imported["snapshot_id"])
    assert again["rows"] == {"landed": 0, "already_present": 40, "quarantined": 0}
    (counts,) = query(folder, "select count(*) as n, count(distinct sample_id) as ids from command_guard_results")
    assert counts == {"n": 40, "ids": 40}


def test_metrics_have_exactly_the_promised_fields(folder: Path, imported: dict[str, Any]) -> None:
    rows = json.loads(evalake_here("metrics", "--run", imported["run_id"], "--format", "json", folder=folder).stdout)
    fields = [
        "suite",
        "model",
        "judge",
        "slice",
        "slice_value",
        "metric",
        "tier",
        "value",
        "n",
        "units",
        "n_eff",
        "se",
        "ci_low",
        "ci_high",
        "reliable",
    ]
    assert all(list(row) == fields for row in rows)
    by_name = {(row["metric"], row["slice"], row["slice_value"]): row for row in rows}
    detection = by_name["malicious_detection_rate", "all", ""]
    assert (detection["value"], detection["n"], detection["reliable"], detection["judge"]) == (0.5, 20, False, None)
    assert by_name["harmless_acceptance_rate", "all", ""]["value"] == 1.0
    assert by_name["balanced_accuracy", "all", ""]["value"] == 0.75
    assert by_name["malicious_detection_rate", "category", "shell"]["n"] == 20
    assert by_name["latency_ms_max", "all", ""]["value"] == 139.0
    assert by_name["cost_usd_total", "all", ""]["value"] == pytest.approx(40 * (1000 * 0.15 + 10 * 0.6) / 1e6)


def test_a_snapshot_is_found_by_the_beginning_of_its_id(folder: Path, imported: dict[str, Any]) -> None:
    short = evalake_here("metrics", "--snapshot", imported["snapshot_id"][:8], "--format", "csv", folder=folder)
    assert len(list(csv.DictReader(io.StringIO(short.stdout)))) > 30


def query(folder: Path, sql: str, *options: str) -> list[dict[str, Any]]:
    done = evalake_here("sql", sql, "--format", "json", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_sql_answers_questions_about_verdicts(folder: Path) -> None:
    found = query(folder, "select verdict, count(*) as n from command_guard_results group by all order by all")
    assert found == [{"verdict": "ALLOW", "n": 30}, {"verdict": "BLOCK", "n": 10}]


def test_sql_reads_a_table_as_it_was(folder: Path) -> None:
    at = ("--at", "command_guard_results=0")
    assert query(folder, "select count(*) as n from command_guard_results", *at) == [{"n": 0}]


def test_sql_writes_parquet(folder: Path) -> None:
    done = evalake_here(
        "sql", "select * from samples", "--format", "parquet", "--out", "samples.parquet", folder=folder
    )
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(folder / "samples.parquet").height == 40


@pytest.mark.parametrize("listing", ["runs", "snapshots", "tables"])
def test_listings_show_what_there_is(folder: Path, listing: str) -> None:
    done = evalake_here(listing, folder=folder)
    assert done.returncode == 0, done.stderr
    assert {"runs": "import-", "snapshots": "command_guard", "tables": "metric_snapshots"}[listing] in done.stdout
    assert json.loads(evalake_here(listing, "--format", "json", folder=folder).stdout)


def test_a_report_is_a_page_and_data(folder: Path, imported: dict[str, Any]) -> None:
    done = evalake_here("report", imported["run_id"], "--out", "shown", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "UNDECIDED" in done.stdout  # 0.75 [0.62-0.8504], as the interval still holds the target of 0.85
    place = folder / "shown" / imported["run_id"]
    assert "openai/gpt-4o-mini" in (place / "report.html").read_text()
    assert json.loads((place / "report.json").read_text())


def test_a_healthy_lake_passes_the_check(folder: Path) -> None:
    done = evalake_here("check", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "command_guard_results: ok" in done.stdout


def test_upkeep_keeps_what_snapshots_pin(folder: Path, imported: dict[str, Any]) -> None:
    assert evalake_here("maintain", "--dry-run", folder=folder).returncode == 0
    done = evalake_here("maintain", folder=folder)
    assert done.returncode == 0, done.stderr
    assert evalake_here("check", folder=folder).returncode == 0  # recomputes the snapshot from its pinned versions


def test_contracts_are_exported(folder: Path) -> None:
    done = evalake_here("export", "contracts", "--out", "odcs", folder=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "odcs" / "command_guard_results.yaml").exists()


def test_bad_lines_are_named_quarantined_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    bad = ["{not json", recorded(1, colour="red"), recorded(2, label="wicked")]
    lines = [LINES[0], *bad, LINES[3], "[]", '{"suite": "x"}']
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines))
    done = evalake_here("import", "mixed.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["rows"] == {"landed": 2, "already_present": 0, "quarantined": 5}
    assert "mixed.jsonl:2" in done.stderr
    reasons = {row["origin"]: row["reason"] for row in query(tmp_path, "select origin, reason from quarantine")}
    assert set(reasons) == {f"mixed.jsonl:{n}" for n in (2, 3, 4, 6, 7)}
    assert "colour" in reasons["mixed.jsonl:3"]
    assert "label" in reasons["mixed.jsonl:4"]


def test_fields_that_begin_with_expected_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(recorded(0, expected_verdict="BLOCK"))
    assert evalake_here("import", "one.jsonl", "--suite", "command_guard", "--json", folder=tmp_path).returncode == 0


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00", b"\xef\xbb\xbf"])
def test_a_file_without_a_good_line_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    done = evalake_here("import", "bad.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("evalake: bad.jsonl holds no recorded result")
    assert not (tmp_path / "lake").exists()


def test_rescoring_gives_the_same_snapshot_from_the_ledger_alone(folder: Path, imported: dict[str, Any]) -> None:
    done = evalake_here("rescore", imported["run_id"], "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    rows = {"landed": 0, "already_present": 40, "quarantined": 0}
    assert json.loads(done.stdout)["rows"] == rows
    versions = {row["snapshot_id"]: row["pinned_versions"] for row in query(folder, "select * from snapshots")}
    assert imported["snapshot_id"] in versions
    values = "select metric, slice, slice_value, value, n from metric_snapshots where snapshot_id = '{}' order by all"
    before, after = (
        query(folder, values.format(i)) for i in (imported["snapshot_id"], json.loads(done.stdout)["snapshot_id"])
    )
    assert before == after


def test_a_run_that_does_not_exist_cannot_be_rescored(folder: Path) -> None:
    done = evalake_here("rescore", "nothing", folder=folder)
    assert done.returncode == 2
    assert "nothing" in done.stderr
