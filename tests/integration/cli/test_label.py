"""`evalake label`: people's words go out as sheets, and come back as rows."""

import csv
import json
import os

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


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
