"""A sheet about audits, filled in, comes back as labels; what cannot be read of it is named, and nothing in it runs."""

import csv
import io
import json
from typing import Any

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.errors import SourceError
from tests.unit.suites.solidity_audit.people.material import WHEN, lines_of_run, read_sheet, sheet_of, write_sheet
from tests.unit.suites.solidity_audit.support import finding, judgement, line, rows_of, target


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_filled_sheet_comes_back_as_labels(form: Any) -> None:
    results, findings = rows_of(lines_of_run())
    lines = sheet_of(results, findings)
    assert not any("classification" in each and each["classification"] for each in lines), "people are not led"
    for each in lines:
        if each["fill_in"] == "verdict":
            each |= {"verdict": "Vulnerable"}
        elif each["finding_id"] is None:
            each |= {"target_found": "yes", "rcir": "0,5"}
        else:
            each |= {"classification": "bonus_valid", "note": "-1 is wrong", "annotator": "bob"}
    labels = read_sheet(write_sheet(lines, form), form, "ann", WHEN)
    assert labels.refused == []
    assert audit(conform(labels.rows, HUMAN_LABELS), HUMAN_LABELS).bad.is_empty()
    assert {(row["annotator"], row["question"], row["answer"], row["score"], row["note"]) for row in labels.rows} == {
        ("ann", "verdict", "vulnerable", None, None),
        ("ann", "target_found", "yes", None, None),
        ("ann", "root_cause_score", None, 0.5, None),
        ("bob", "classification", "BONUS_VALID", None, "-1 is wrong"),
    }
    assert all(row["inclusion_probability"] == 1.0 for row in labels.rows)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_claim_with_any_line_end_stays_one_line_of_the_sheet(form: Any, end: str) -> None:
    claimed = judgement([finding(location_claimed=f"withdraw(){end}line 7")], target())
    results, findings = rows_of([line(0, judged=claimed)])
    lines = sheet_of(results, findings, 1)
    filled = [each | {"note": "seen", "verdict": "vulnerable"} for each in lines]
    labels = read_sheet(write_sheet(filled, form), form, "ann", WHEN)
    assert labels.refused == []
    assert len(labels.rows) == 2
    assert len(lines) == 3


def test_a_sheet_runs_nothing_in_a_spreadsheet() -> None:
    results, findings = rows_of(lines_of_run())
    text = write_sheet(sheet_of(results, findings), "csv")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert "'=HYPERLINK(evil)" in cells
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"verdict": "maybe"}, "vulnerable, safe"),
        ({"target_found": "dunno"}, "yes or no"),
        ({"classification": "NICE", "finding_id": 1}, "TARGET_MATCH"),
        ({"classification": "BONUS_VALID"}, "finding_id"),
        ({"rcir": "1.5"}, "0 to 1"),
        ({"rcir": "nan"}, "0 to 1"),
        ({"target_found": "yes", "prompt_hash": ""}, "prompt_hash"),
        ({"target_found": "yes", "replicate": "x"}, "replicate"),
    ],
)
def test_a_bad_line_is_refused_and_the_others_are_read(change: dict[str, Any], named: str) -> None:
    identity = {
        "sample_id": "s",
        "sample_hash": "a" * 64,
        "prompt_hash": "b" * 64,
        "model": "m",
        "prompt_type": "direct",
    }
    good = {**identity, "target_found": True}
    bad = {name: value for name, value in good.items() if name != "target_found"} | change
    text = "\n".join(map(json.dumps, [good, bad, {**good, "target_found": None}])) + "\nnot json\n[]\n"
    labels = read_sheet(text, "jsonl", "ann", WHEN)
    assert len(labels.rows) == 1
    assert labels.empty == 1
    assert named in labels.refused[0].reason
    assert [refusal.where for refusal in labels.refused] == ["line 2", "line 4", "line 5"]


def test_a_sheet_of_before_names_its_annotator_otherwise() -> None:
    identity = dict.fromkeys(("sample_id", "sample_hash", "prompt_hash", "model", "prompt_type"), "x")
    (label,) = read_sheet(json.dumps({**identity, "verdict": "safe", "labeller": "bob"}), "jsonl", "ann", WHEN).rows
    assert label["annotator"] == "bob"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", 'prompt_hash,sample_hash,model\n"unfinished'])
def test_what_is_no_sheet_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        read_sheet(text, "csv", "ann", WHEN)
