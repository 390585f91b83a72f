"""Data docs: a page that needs neither script nor network, and shows what others wrote as text."""

import json
from pathlib import Path

from reports.data_docs import DATA, write_data_docs

HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def test_findings_and_broken_rules_stand_on_a_page_of_their_own(tmp_path: Path) -> None:
    rule = {"rule": "cost_not_negative", "demands": "cost_usd is at least 0", "severity": "error"}
    results = [{"passed": False, "rows_failed": 1200}, None]
    table = {
        "table": "calls",
        "purpose": "The ledger.",
        "rows": 5000,
        "findings": [{"problem": HOSTILE, "mend": "restore it"}],
        "rules": [{**rule, "dimension": "validity", "results": results}],
        "broken": True,
    }
    data = {
        "lake": "/lake",
        "checked_at": "2026-11-23 12:00 UTC",
        "findings": 1,
        "engines": ["Great Expectations", "audit"],
        "snapshots": {"proved": 3},
        "tables": [table],
    }
    page = write_data_docs(data, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "broken</span> by 1,200" in text
    assert "&lt;img" in text
    assert [part for part in ("<img", "<script", "http:", "https:", "\u202e") if part in text] == []
    assert json.loads((tmp_path / DATA).read_text(encoding="utf-8")) == data
