"""Report pages, in a browser and plain."""

import base64
import hashlib
import json
import math
import re
from dataclasses import asdict
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import polars as pl
import pytest

from evalake.reports.files import as_data
from evalake.reports.page import fill, render, write_data_docs, write_page, write_roadmap
from evalake.reports.ranking import Missing
from tests.unit.reports.samples import answers, guard_metrics, metric, report, two_models

# The page and the JSON beside it: numbers, hostile text, no network, edges.

HOSTILE = (
    "<script>alert(1)</script>",
    '</script><img src=x onerror="alert(1)">',
    '<b>x</b><a href="javascript:alert(1)">y</a>',
    "{{ 7 * 7 }}",
    "\" onmouseover=alert(1) x='",
)
FETCHING = {"src", "href", "srcset", "action", "formaction", "data", "poster", "background", "xlink:href"}


class Page(HTMLParser):
    """What a browser would make of the page: elements, attributes, text outside scripts, and each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._raw: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._raw = None

    def handle_data(self, data: str) -> None:
        if self._raw == "script":
            self.scripts.append(data)
        elif self._raw is None:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def marks(self, tag: str) -> list[dict[str, str | None]]:
        """The marks of this kind in the drawings for a screen."""
        return [attrs for name, attrs in self.elements if name == tag]


def test_the_numbers_are_on_the_page() -> None:
    text = Page(render(two_models())).text
    for shown in ("92.5%", "[87.5–97.5]", "PASS", "FAIL", "1.5 s", "$1.50", "250 ms", "run-1", "guard_results: 3"):
        assert shown in text


def test_every_plot_has_its_numbers_as_a_table_and_says_what_it_shows() -> None:
    page = Page(render(two_models()))
    labels = [attrs["aria-label"] or "" for _, attrs in page.elements if attrs.get("role") == "img"]
    drawings = [label for label in labels if label.endswith("The numbers follow as a table.")]
    assert len(drawings) == 8, "four, for a screen and for a telephone"
    assert all("model" in label for label in drawings)
    tables = sum(tag == "table" for tag, _ in page.elements)
    assert sum(tag == "caption" for tag, _ in page.elements) == tables
    assert tables >= 5


def test_what_rests_on_few_samples_is_marked_in_tables_and_plots() -> None:
    page = Page(render(two_models()))
    marks = [attrs for tag, attrs in page.elements if tag == "sup"]
    assert [attrs["title"] for attrs in marks] == ["n = 4: unreliable"]
    assert "25%*" in page.text
    few = Page(render(report(guard_metrics("a", 0.9, 0.9, n=7, latency=10.0))))
    assert {mark["fill"] for mark in few.marks("circle")} == {"none"}
    assert any("-hatch" in str(mark["fill"]) for mark in few.marks("rect")), "the bar is hatched"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    rows = guard_metrics(name, 0.9, 0.9, cost=1.0, latency=5.0, categories={name: 0.5})
    results = answers(name, 3, 5, category=name, command=name, reason=name)
    hostile = Page(render(report(rows, results, run={"run_id": name, "message": name}, snapshot={"warnings": [name]})))
    same = re.sub("[^/]", "m", name)
    benign = Page(render(report(
        guard_metrics(same, 0.9, 0.9, cost=1.0, latency=5.0, categories={same: 0.5}),
        answers(same, 3, 5, category=same, command=same, reason=same),
        run={"run_id": same, "message": same},
        snapshot={"warnings": [same]},
    )))  # fmt: skip
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in benign.elements]
    assert [sorted(attrs) for _, attrs in hostile.elements] == [sorted(attrs) for _, attrs in benign.elements]
    assert name in hostile.text


def test_nothing_is_fetched_and_only_our_scripts_may_run() -> None:
    page = Page(render(two_models()))
    assert not [attrs for tag, attrs in page.elements if FETCHING & set(attrs) and tag not in ("script", "a")]
    assert not {"link", "iframe", "img", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    (policy,) = [str(a["content"]) for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert [attrs for tag, attrs in page.elements if tag == "script"] == [{}]
    digest = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_the_style_names_no_address() -> None:
    style = re.search(r"<style>(.*?)</style>", render(two_models()), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_what_is_unknown_is_left_out_of_the_plot_and_named() -> None:
    rows = guard_metrics("known", 0.9, 0.9, cost=1.0) + guard_metrics("priceless", 0.8, 0.8)
    page = Page(render(report(rows)))
    assert "Left out, as cost is unknown: priceless." in page.text
    assert len(Page(render(report(rows[: len(rows) // 2]))).marks("circle")) == len(page.marks("circle")) - 2


def test_nothing_known_leaves_no_plot_and_says_so() -> None:
    page = Page(render(report([metric("m", name, None, 0) for name in ("score", "detection", "cost", "latency")])))
    assert page.marks("svg") == []
    assert "unknown for every model." in page.text


@pytest.mark.parametrize("count", [1, 9, 30])
def test_any_number_of_models(count: int) -> None:
    rows = [r for i in range(count) for r in guard_metrics(f"m{i}", i / 30, i / 30, cost=2.0**i, latency=i + 1.0)]
    page = Page(render(report(rows)))
    assert len(page.marks("circle")) == count * 2 * 2, "two figures with a point a model, each at two widths"


def test_a_report_without_any_metric_is_a_page() -> None:
    assert "0 models" in render(report([]))


def test_mistakes_are_listed_by_group_up_to_a_limit() -> None:
    rows = guard_metrics("m", 0.5, 0.5)
    results = pl.concat(
        [answers("m", 0, 250, category="file-read"), answers("m", 30, 40, label="harmless", command="ls")]
    )
    text = Page(render(report(rows, results))).text
    assert "260" in text
    assert "of which the first 200 are shown" in text
    assert text.count("rm -rf /") + text.count(" ls ") == 200
    assert "file-read (" in text
    assert "harmless (" in text


def test_a_mistake_leads_to_its_item_in_the_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    def addresses() -> set[str | None]:
        built = report(guard_metrics("m/a b", 0.5, 0.5), answers("m/a b", 39), run={"run_id": "run 1"})
        return {attrs["href"] for tag, attrs in Page(render(built)).elements if tag == "a"}

    here = "http://127.0.0.1:8601/runs/run%201/items"
    assert addresses() == {here, f"{here}?model=m%2Fa+b", f"{here}/hash-malicious-39"}
    monkeypatch.setenv("EVALAKE_VIEWER_URL", "https://evals.example.org/")
    assert "https://evals.example.org/runs/run%201/items/hash-malicious-39" in addresses()


def test_without_a_mistake_it_says_none() -> None:
    assert "None." in Page(render(report(guard_metrics("m", 1.0, 1.0), answers("m", 5, 5)))).text


def test_judges_are_told_apart_and_ranked_apart() -> None:
    rows = [metric("m", "score", value, judge=judge) for judge, value in (("j1", 0.9), ("j2", 0.4))]
    built = report(rows)
    assert [built.standings[s].rank for s in built.subjects] == [1, 1]
    assert "m · j1" in render(built)
    assert "m · j2" in render(built)


def test_the_files_stand_where_asked_and_the_data_is_plain_json(tmp_path: Path) -> None:
    page = write_page(two_models(), tmp_path / "a" / "b")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {path.name for path in page.parent.iterdir()} == {"report.html", "report.json"}
    assert page.stat().st_size < 100_000
    write_page(two_models(), page.parent, figures=True)
    drawings = [file for file in (page.parent / "figures").iterdir() if file.suffix == ".svg"]
    assert len(drawings) == 4
    drawn = {file.stem[3:]: fromstring(file.read_bytes()) for file in drawings}
    assert {each.tag for each in drawn.values()} == {"{http://www.w3.org/2000/svg}svg"}
    for name, each in drawn.items():  # which no page explains
        heading = each.findtext("{http://www.w3.org/2000/svg}text") or ""
        assert re.sub("[^a-z0-9]+", "-", heading.lower()) == name
    data = json.loads((page.parent / "report.json").read_text(encoding="utf-8"))
    assert [(r["model"], r["rank"], r["letters"], r["decision"]) for r in data["ranking"]] == [
        ("a/good", 1, "a", "PASS"),
        ("b/bad", 2, "b", "FAIL"),
    ]
    assert data["target"] == {"metric": "score", "value": 0.85}
    assert data["comparisons"][0]["p_adjusted"] < 0.05
    assert len(data["metrics"]) == two_models().metrics.height
    assert data["run"]["started_at"].startswith("2025-01-01")


# Pages of a roadmap and of a check: what they say, hostile text in them, and that they fetch and run nothing.


def render_plain(data: dict[str, Any]) -> str:
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
    text = Page(render_plain(roadmap("heap-graph", judge="openai/x"))).text
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
    assert "by the words in common" in Page(render_plain(roadmap())).text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text(hostile: str) -> None:
    page = Page(render_plain(roadmap(hostile, judge=hostile)))
    assert hostile in page.text
    assert page.scripts == []
    for _, attributes in page.elements:
        assert not any(name in FETCHING or name.startswith("on") for name in attributes)


def test_page_and_data_are_written_beside_each_other(tmp_path: Path) -> None:
    page = write_roadmap(roadmap(), tmp_path / "made" / "here")
    assert page == tmp_path / "made" / "here" / "roadmap.html"
    assert json.loads((page.parent / "roadmap.json").read_text()) == roadmap()


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
        "unchecked": "tables that no suite here declares: toy_results",
        "engines": ["Great Expectations", "audit"],
        "snapshots": {"proved": 3},
        "tables": [table],
    }
    page = write_data_docs(data, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "broken</span>: 1,200 rows" in text
    assert "declares: toy_results" in text
    assert "&lt;img" in text
    assert [part for part in ("<img", "<script", "http:", "https:", "\u202e") if part in text] == []
    assert json.loads((tmp_path / "data-docs.json").read_text(encoding="utf-8")) == data


# The report for machines: whole, plain JSON, and null where a number is unknown.


def test_unknown_and_infinite_numbers_are_null() -> None:
    rows = [metric("a", "score", math.nan), metric("a", "detection", math.inf)]
    data = as_data(report(rows, run={"cost_usd": -math.inf}))
    assert [row["value"] for row in data["metrics"]] == [None, None]
    assert data["run"]["cost_usd"] is None
    assert data["ranking"][0]["value"] is None
    assert data["ranking"][0]["decision"] is None


def test_without_a_target_or_comparisons_nothing_is_decided() -> None:
    data = as_data(report(guard_metrics("a", 0.9, 0.9), target=None))
    assert (data["target"], data["comparisons"], data["missing"]) == (None, [], [])
    assert (data["ranking"][0]["letters"], data["ranking"][0]["decision"]) == (None, None)


def test_moments_are_written_as_iso_and_what_is_missing_with_its_bounds() -> None:
    missing = Missing("a", None, 10, 2, {"timeout": 2}, {"score": (0.5, 0.75)})
    built = report(guard_metrics("a", 0.9, 0.9), missing=(missing,), run={"day": date(2026, 3, 1)})
    data = as_data(built)
    assert (data["run"]["started_at"], data["run"]["day"]) == ("2025-01-01T00:00:00+00:00", "2026-03-01")
    assert data["missing"] == [{**asdict(missing), "bounds": {"score": [0.5, 0.75]}}]
