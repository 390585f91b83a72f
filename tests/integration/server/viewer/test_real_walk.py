"""The viewer over a lake of three suites with real recorded results: its pages fit, and are readable."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from evalake.admin.import_results import import_recorded, import_samples
from evalake.server.settings import Settings
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.e2e.dashboard.browsing import Visit
from tests.integration.server.viewer.conftest import Open, served

SUITES = ("command_guard", "solidity_audit", "session_review")
WIDER = "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel ?? e.className)"
OVERLAPPING = """all => {
  const boxes = all.map((e) => [e.textContent, e.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const after = (i) => boxes.slice(i + 1);
  return boxes.flatMap(([one, a], i) => after(i).filter(([, b]) => meet(a, b)).map(([other]) => `${one} on ${other}`));
}"""
WIDTHS = (1440, 1024, 390)


@dataclass(frozen=True)
class Recorded:
    """A lake of real results, where it is served, and its runs by suite."""

    lake: Lake
    address: str
    runs: Mapping[str, str]


@pytest.fixture(scope="module")
def recorded(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    lake = Lake(str(tmp_path_factory.mktemp("real") / "lake"))
    oracles = real_data.parent / "oracles"
    guard, audit, review = (suite(name) for name in SUITES)
    runs = {
        guard.name: import_recorded(lake, guard, [oracles / "command_guard" / "results.jsonl"]),
        audit.name: import_recorded(lake, audit, [oracles / "solidity_audit_panel" / "ds_tier1.judgements.jsonl"]),
        review.name: import_samples(lake, review, [str(real_data / "tarsy" / "py_sessions")]),
    }
    with served(Settings(lake=lake)) as address:
        yield Recorded(lake, address, runs)


@pytest.mark.real_data
def test_every_page_fits_and_items_of_each_suite_are_readable(look: Open, recorded: Recorded) -> None:
    """Whether other pages are readable, test_pages.py tells."""
    visit = look(recorded.address + "/runs")
    cut = {"/runs": _cut(visit)}
    for run in recorded.runs.values():
        for path in (f"/runs/{run}", f"/runs/{run}/items"):
            visit.page.goto(recorded.address + path)
            visit.settled()
            cut[path] = _cut(visit)
        visit.page.locator("tbody a.id").first.click()
        expect(visit.page.get_by_role("heading", level=2).first).to_be_visible()
        visit.settled()
        cut[f"item of {run}"] = _cut(visit) + visit.obstacles()
    assert cut == {path: [] for path in cut}


@pytest.mark.real_data
def test_of_many_judges_one_is_looked_at_and_its_models_names_stand_apart(look: Open, recorded: Recorded) -> None:
    page = look(f"{recorded.address}/metrics?run={recorded.runs['solidity_audit']}").page
    judge = page.get_by_label("Judge", exact=True)
    expect(judge).to_have_value(re.compile("^panel:"))
    names = page.locator(".plot").first.locator("text.name")
    expect(names).to_contain_text(["claude-opus-4-5"])
    assert names.evaluate_all(OVERLAPPING) == []
    judge.select_option("all")
    page.reload()
    expect(judge).to_have_value("all")


@pytest.mark.real_data
def test_where_no_input_was_recorded_no_column_is_kept_for_it(look: Open, recorded: Recorded) -> None:
    run = recorded.runs["solidity_audit"]
    page = look(f"{recorded.address}/compare?run={run}&a=claude-opus-4-5&b=gpt-5.2").page
    expect(page.get_by_role("columnheader", name="Words")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Input")).to_have_count(0)
    page.get_by_role("button", name="Compare", exact=True).first.click()
    expect(page.locator(".sides").first).to_be_visible()


def _cut(visit: Visit) -> list[str]:
    """The widths at which the page is wider than its window, and tables of texts that are wider than their place."""
    tables, found = visit.page.locator("main :is(.scroll:has(.texts), .listing)"), []
    for width in WIDTHS:
        visit.look(width, "light")
        found += [f"{width}: {table}" for table in tables.evaluate_all(WIDER)]
        found += [f"{width}: the page"] * (visit.overflow() > 0)
    return found
