"""Pages of decisions: a difference with the rows behind its parts, and what gates decided over time."""

from pathlib import Path

import httpx
from playwright.sync_api import expect

from evalake.contracts.tables import GATE_DECISIONS
from evalake.decisions.explain import explain
from tests.integration.cli.command import evalake_here
from tests.integration.server.viewer.conftest import Open
from tests.integration.server.viewer.world import BAD, GOOD, World

LOOKS = ((1440, "light"), (390, "dark"))
RULES = ("accuracy >= 0.95", "no significant drop in accuracy")


def test_a_gate_keeps_each_decision_once_and_its_page_shows_them(
    look: Open, address: str, http: httpx.Client, world: World, tmp_path: Path
) -> None:
    rules = [option for rule in RULES for option in ("--rule", rule)]
    for model in (GOOD, BAD, BAD):
        other = f"{world.verdicts}:{GOOD}"
        evalake_here(
            "gate", f"{world.verdicts}:{model}", *rules, "--baseline", other, "--lake", world.lake.uri, folder=tmp_path
        )
    histories = {(each["rule"], each["model"]): each["decisions"] for each in http.get("/gates").json()}
    verdicts = {of: [each["verdict"] for each in decisions] for of, decisions in histories.items()}
    assert verdicts == {
        (RULES[0], GOOD): ["FAIL"],
        (RULES[0], BAD): ["FAIL"],
        (RULES[1], GOOD): ["PASS"],
        (RULES[1], BAD): ["PASS"],
    }
    assert world.lake.frame(GATE_DECISIONS).collect().height == 4
    (level,) = histories[RULES[0], BAD]
    assert level["limit_high"] > level["ci_high"] > level["value"]  # what decided is kept beside what is shown
    assert level["missing"] == 0.0
    visit = look(f"{address}/gates")
    expect(visit.page.get_by_role("heading", name=RULES[0])).to_be_visible()
    for details in visit.page.get_by_role("main").locator("summary").all():
        details.click()
    assert visit.obstacles_of(LOOKS) == []


def test_an_explanation_leads_to_the_rows_behind_its_parts(
    look: Open, address: str, http: httpx.Client, world: World
) -> None:
    sides = {"a": f"{world.verdicts}:{GOOD}", "b": f"{world.changed}:{GOOD}-2"}
    page = http.get("/explain", params=sides).json()
    known = explain(world.lake, sides["a"], sides["b"])
    assert [part["contribution"] for part in page["parts"]] == known.parts["contribution"].to_list()
    assert {part: len(rows) for part, rows in page["rows"].items()} == dict(
        known.rows.group_by("part").len().iter_rows()
    )
    visit = look(f"{address}/explain?a={sides['a']}&b={sides['b']}")
    expect(visit.page.get_by_role("rowheader", name="replies", exact=True)).to_be_visible()
    for details in visit.page.get_by_role("main").locator("summary").all():
        details.click()
    assert visit.obstacles_of(LOOKS) == []
