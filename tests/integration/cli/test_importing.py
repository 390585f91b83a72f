"""Commands that import results and labels."""

import csv
import json
import os
from pathlib import Path

import pytest

from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported
from tests.integration.cli.people import FOUND

# `evalake import`: what it prints, what it lands once, and what it refuses.


def test_json_is_one_object_with_the_promised_fields(imported: Imported) -> None:
    promised = ["run_id", "snapshot_id", "state", "message", "samples", "calls", "rows", "cost_usd", "seconds"]
    assert list(imported.said) == [*promised, "coverage", "differ"]
    assert (imported.said["message"], imported.said["differ"]) == (None, 0)
    assert {each["missing_share"] for each in imported.said["coverage"]} == {0.0}
    assert sum(each["asked"] for each in imported.said["coverage"]) == 40
    assert list(imported.said["calls"]) == ["made", "from_ledger", "failed"]
    assert imported.said["rows"] == {"landed": 40, "already_present": 0, "quarantined": 0}
    assert (imported.said["state"], imported.said["samples"]) == ("completed", 40)


def test_importing_again_is_the_same_run_and_adds_nothing(imported: Imported) -> None:
    again = json.loads(
        evalake_here("import", "results.jsonl", "--suite", "command_guard", "--json", folder=imported.folder).stdout
    )
    assert (again["run_id"], again["snapshot_id"]) == (imported.run, imported.said["snapshot_id"])
    assert again["rows"] == {"landed": 0, "already_present": 40, "quarantined": 0}
    (counts,) = imported.query("select count(*) as n, count(distinct sample_id) as ids from command_guard_results")
    assert counts == {"n": 40, "ids": 40}


def test_bad_lines_are_named_quarantined_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    bad = ["{not json", recorded(1, colour="red"), recorded(2, label="wicked")]
    lines = [recorded(0), *bad, recorded(3), "[]", '{"suite": "x"}']
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines))
    done = evalake_here("import", "mixed.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["rows"] == {"landed": 2, "already_present": 0, "quarantined": 5}
    assert said["state"] == "incomplete"
    refused = {each["model"]: sum(each["refused"].values()) for each in said["coverage"]}
    assert refused == {"openai/gpt-4o-mini": 2, "": 3}
    assert "mixed.jsonl:2" in done.stderr
    reasons = {
        row["origin"]: row["reason"] for row in Imported(tmp_path, {}).query("select origin, reason from quarantine")
    }
    assert set(reasons) == {f"mixed.jsonl:{n}" for n in (2, 3, 4, 6, 7)}
    assert "colour" in reasons["mixed.jsonl:3"]
    assert "label" in reasons["mixed.jsonl:4"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: there is no result in it"),
        (b"\xff\xfe\x00", "holds no recorded result"),
        (b"\xef\xbb\xbf", "holds no recorded result"),
    ],
)
def test_a_file_without_a_good_line_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    done = evalake_here("import", "bad.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"evalake: bad.jsonl {said}")
    assert not (tmp_path / "lake").exists()


def test_imported_results_are_measured_with_the_options_of_the_configuration(audited: Imported, tmp_path: Path) -> None:
    (tmp_path / "audits.jsonl").write_text((audited.folder / "audits.jsonl").read_text())
    weights = {"f2": 1, "target_detection_rate": 0, "finding_precision": 0, "avg_reasoning": 0, "calibration": 0}
    lines = [f"{name} = {weight}" for name, weight in weights.items()]
    (tmp_path / "evalake.toml").write_text("\n".join(["[suites.solidity_audit.sui_weights]", *lines]))
    done = json.loads(
        evalake_here("import", "audits.jsonl", "--suite", "solidity_audit", "--json", folder=tmp_path).stdout
    )
    shown = evalake_here("metrics", "--run", done["run_id"], "--format", "json", folder=tmp_path).stdout
    values = {(row["metric"], row["model"]): row["value"] for row in json.loads(shown) if row["slice"] == "all"}
    assert [values["sui", model] for model in FOUND] == [values["f2", model] for model in FOUND]


# `evalake label`: people's words go out as sheets, and come back as rows.


def test_a_sheet_is_exported_filled_in_and_imported(audited: Imported) -> None:
    done = evalake_here("label", "export", audited.run, "--size", "4", "--out", "sheet.csv", folder=audited.folder)
    assert done.returncode == 0, done.stderr
    with (audited.folder / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    audits = [row for row in rows if row["fill_in"] == "verdict"]
    assert len(audits) == 4
    assert all(row["sample_id"] == f"sample-{row['sample_hash'][:12]}" for row in rows)  # labelled blind
    audits[0].update(verdict="vulnerable", target_found="yes", annotator="ada")
    audits[1].update(target_found="perhaps")
    with (audited.folder / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = evalake_here("label", "import", "filled.csv", "--suite", "solidity_audit", folder=audited.folder)
    assert done.returncode == 1
    assert "2 answers landed" in done.stdout
    assert "1 refused" in done.stdout
    assert "perhaps" in done.stderr
    query = (
        "select annotator, question, answer, sample_id in (select sample_id from solidity_audit_results) as named "
        "from human_labels order by question desc"
    )
    found = evalake_here("sql", query, "--format", "json", folder=audited.folder)
    assert json.loads(found.stdout) == [
        {"annotator": "ada", "question": "verdict", "answer": "vulnerable", "named": True},
        {"annotator": "ada", "question": "target_found", "answer": "yes", "named": True},
    ]


def test_a_sheet_of_another_lake_is_refused(audited: Imported) -> None:
    evalake_here("label", "export", audited.run, "--size", "1", "--out", "strange.csv", folder=audited.folder)
    rows = list(csv.DictReader((audited.folder / "strange.csv").read_text().splitlines()))
    rows[0].update(target_found="yes", sample_hash="f" * 64)
    with (audited.folder / "strange.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[:1])
    done = evalake_here("label", "import", "strange.csv", "--suite", "solidity_audit", folder=audited.folder)
    assert done.returncode == 1
    assert "no result of it" in done.stderr


def test_a_sheet_that_is_no_regular_file_is_not_waited_for(audited: Imported) -> None:
    if not (audited.folder / "pipe.csv").exists():
        os.mkfifo(audited.folder / "pipe.csv")
    done = evalake_here("label", "import", "pipe.csv", "--suite", "solidity_audit", folder=audited.folder)
    assert done.returncode == 2
    assert "pipe.csv is not read: no regular file" in done.stderr


def test_a_file_that_is_no_sheet_says_so(audited: Imported) -> None:
    (audited.folder / "empty.csv").write_text("a,b\n")
    done = evalake_here("label", "import", "empty.csv", "--suite", "command_guard", folder=audited.folder)
    assert done.returncode == 2
    assert "no sheet of labels" in done.stderr
