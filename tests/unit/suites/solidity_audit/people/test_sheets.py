"""A sheet about audits, filled in, comes back as labels; what cannot be read of it is named, and nothing in it runs."""

from typing import Any

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from tests.unit.suites.solidity_audit.people.material import WHEN, lines_of_run, read_sheet, sheet_of, write_sheet
from tests.unit.suites.solidity_audit.support import rows_of


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
