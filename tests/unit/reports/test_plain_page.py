"""Pages of a roadmap and of a check: what they say, hostile text in them, and that they fetch and run nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import UsageError
from evalake.reports.page import fill, write_data_docs, write_roadmap
from tests.unit.reports.test_page import FETCHING, HOSTILE, Page


def render(data: dict[str, Any]) -> str:
    return fill("roadmap.html.j2", roadmap=data)


def roadmap(text: str = "it was not there", judge: str | None = None) -> dict[str, Any]:
    mention = {"sample_id": text, "sample_hash": "0" * 64, "name": text, "text": text}
    theme = {
        "rank": 1, "theme_id": "1" * 64, "theme": text, "samples": 2, "points_lost": 1234.56, "mean_score": 41.25,
        "names": [text], "mentions": [mention, {**mention, "text": None}],
    }  # fmt: skip
    kinds = [{"kind": "absent", "title": "Tools that do not exist", "themes": [theme]}]
    kinds.append({"kind": "unused", "title": "Tools that should have been used", "themes": []})
    return {
        "roadmap_id": "2" * 64, "title": "Tool roadmap", "suite": "reviews", "judge": judge, "samples": 7,
        "made_at": "2026-11-23T12:00:00+00:00", "kinds": kinds,
    }  # fmt: skip


def test_it_says_what_was_found_and_what_that_rests_on() -> None:
    text = Page(render(roadmap("heap-graph", judge="openai/x"))).text
    for said in (
        "7 scored samples",
        "by meaning by openai/x",
        "heap-graph",
        "1,234.6",
        "41.2",
        "None was named",
        "2" * 64,
    ):
        assert said in text
    assert "by the words in common" in Page(render(roadmap())).text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text(hostile: str) -> None:
    page = Page(render(roadmap(hostile, judge=hostile)))
    assert hostile in page.text
    assert page.scripts == []
    for _, attributes in page.elements:
        assert not any(name in FETCHING or name.startswith("on") for name in attributes)


def test_page_and_data_are_written_beside_each_other(tmp_path: Path) -> None:
    page = write_roadmap(roadmap(), tmp_path / "made" / "here")
    assert page == tmp_path / "made" / "here" / "roadmap.html"
    assert json.loads((page.parent / "roadmap.json").read_text()) == roadmap()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the report to"):
        write_roadmap(roadmap(), tmp_path / "file" / "in")


IMAGE = "<img src=x onerror=alert(1)>\u202e"


def test_findings_and_broken_rules_stand_on_a_page_of_their_own(tmp_path: Path) -> None:
    rule = {"rule": "cost_not_negative", "demands": "cost_usd is at least 0", "severity": "error"}
    results = [{"passed": False, "outcome": "broken", "rows_failed": 1200}, None]
    table = {
        "table": "calls",
        "purpose": "The ledger.",
        "rows": 5000,
        "findings": [{"problem": IMAGE, "mend": "restore it"}],
        "rules": [{**rule, "dimension": "validity", "results": results}],
        "state": "broken",
        "warnings": [],
    }
    data = {
        "lake": "/lake",
        "checked_at": "2026-11-23 12:00 UTC",
        "findings": 1,
        "warnings": 0,
        "engines": ["Great Expectations", "audit"],
        "snapshots": {"proved": 3},
        "tables": [table],
    }
    page = write_data_docs(data, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "broken</span>: 1,200 rows" in text
    assert "&lt;img" in text
    assert [part for part in ("<img", "<script", "http:", "https:", "\u202e") if part in text] == []
    assert json.loads((tmp_path / "data-docs.json").read_text(encoding="utf-8")) == data
