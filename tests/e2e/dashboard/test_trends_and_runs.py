"""Statistics, and the runs and metrics of every suite."""

import json

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.world import HOSTILE, HOSTILE_ID, World

pytestmark = pytest.mark.e2e


def test_trends_show_what_the_statistics_say(visit: Open, address: str) -> None:
    page = visit("/trends").page
    # Distribution, days, missing tools, patterns of failure, and the roadmap's tools and patterns
    expect(page.locator(".plot svg")).to_have_count(6)
    said = httpx.get(f"{address}/api/v1/scoring/statistics", timeout=60).json()
    tiles = page.get_by_role("list", name="In figures")
    expect(tiles.get_by_role("listitem").filter(has_text="Sessions")).to_contain_text(str(said["sessions"]["total"]))
    figure = page.locator("section", has=page.get_by_role("heading", name="Distribution of scores"))
    figure.get_by_text("The numbers").click()
    expect(figure.get_by_role("cell")).to_have_text([str(each["count"]) for each in said["distribution"]])
    tools = page.locator("section", has=page.get_by_role("heading", name="Missing tools"))
    tools.get_by_text("The numbers").click()
    expect(tools.get_by_role("rowheader")).to_have_text([each["tool_name"] for each in said["missing_tools"]])
    assert page.locator("main img, main script").count() == 0


def test_the_roadmap_leads_from_what_is_wanting_to_the_sessions_behind_it(visit: Open) -> None:
    page = visit("/trends").page
    figure = page.locator("section", has=page.get_by_role("heading", name="Roadmap: tools that do not exist"))
    figure.get_by_text("The numbers").click()
    expect(figure.get_by_role("cell")).to_have_text(["1", "45", "55"])
    figure.get_by_text("The sessions behind each").click()
    figure.locator("details.inner summary").click()
    expect(figure.get_by_role("listitem")).to_contain_text(HOSTILE)
    figure.get_by_role("listitem").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE_ID)


def test_what_somebody_opened_stays_open_when_a_new_score_comes_in(visit: Open, world: World) -> None:
    page = visit("/trends").page
    figure = page.locator("section", has=page.get_by_role("heading", name="Distribution of scores"))
    figure.get_by_text("The numbers").click()
    expect(figure.get_by_role("table")).to_be_visible()
    before = figure.get_by_role("row", name="90").get_by_role("cell").inner_text()
    world.score("live-trends", 92)
    expect(figure.get_by_role("row", name="90").get_by_role("cell")).to_have_text(str(int(before) + 1))
    expect(figure.get_by_role("table")).to_be_visible()


def test_outdated_scores_are_made_again_only_after_asking(visit: Open) -> None:
    page = visit("/trends").page
    asked: list[dict[str, object]] = []
    answer = {"accepted": [], "existing": [], "refused": [{"session_id": "x", "status": 503, "detail": HOSTILE}]}

    def take(route, request) -> None:  # type: ignore[no-untyped-def]
        asked.append(json.loads(request.post_data))
        route.fulfill(status=202, json=answer)

    page.route("**/batch", take)
    page.get_by_role("button", name="Score them again").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert asked == []
    page.get_by_role("button", name="Score them again").click()
    page.get_by_role("dialog").get_by_role("button", name="Score 1 session").click()
    expect(page.get_by_role("note")).to_contain_text(f"Refused: 1, {HOSTILE}")
    assert asked == [{"obsolete": True}]


def test_metric_history_and_runs_of_a_suite(visit: Open) -> None:
    page = visit("/runs").page
    figure = page.locator("section", has=page.get_by_role("heading", name="balanced accuracy"))
    expect(figure.get_by_text("The newest 6 of 8 lines")).to_be_visible()
    expect(figure.locator(".point:not(.legend *)")).to_have_count(6)
    expect(figure.locator(".whisker")).to_have_count(6)
    figure.get_by_text("The numbers").click()
    expect(figure.get_by_role("row")).to_have_count(11)
    expect(figure.get_by_role("row").nth(1)).to_contain_text("0.9")
    page.get_by_label("Suite", exact=True).select_option("command_guard")
    expect(page.get_by_label("Metric", exact=True)).to_be_visible()
    page.get_by_label("Model", exact=True).select_option("baseline/rules")
    expect(figure.locator(".whisker")).to_have_count(5)
    runs = page.get_by_role("table", name="Runs, newest first")
    expect(runs.get_by_role("rowheader")).to_have_text(["run-failed", "run-4", "run-3", "run-2", "run-1", "run-0"])
    expect(runs.get_by_role("row").nth(1)).to_contain_text(HOSTILE)
    expect(runs.get_by_role("row").nth(2)).to_contain_text("$0.25")
    page.get_by_label("Suite", exact=True).select_option("solidity_audit")
    expect(page.get_by_text("No run yet.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Suite", exact=True)).to_have_value("solidity_audit")


def test_only_values_that_mean_the_same_are_joined(visit: Open) -> None:
    page = visit("/runs?suite=command_guard&model=baseline/rules").page
    figure = page.locator("section", has=page.get_by_role("heading", name="balanced accuracy"))
    model = "baseline/rules · "
    newest, few, grown, usual = (
        f"{model}{what}"
        for what in (
            "other+starter",
            "starter (first 5)",
            f"starter · datasets starter {'b' * 8}",
            f"starter · datasets starter {'a' * 8}",
        )
    )
    expect(figure.locator(".legend li")).to_have_text([newest, few, usual, grown])
    joined = figure.locator(".plot polyline")
    expect(joined).to_have_count(1)
    assert len(str(joined.get_attribute("points")).split()) == 2
    figure.get_by_text("The numbers").click()
    expect(figure.get_by_role("rowheader")).to_have_text([newest, few, grown, usual, usual])
    # The only step is between runs whose rows this lake does not have
    expect(figure.get_by_role("row").nth(4)).to_contain_text("not comparable")


def test_a_session_that_comes_to_a_source_is_announced_on_the_open_page(visit: Open, world: World) -> None:
    seen = visit("/?search=brand-new")
    expect(seen.page.get_by_text("No session matches these filters.")).to_be_visible()
    world.add("brand-new")
    expect(seen.page.get_by_role("note")).to_contain_text("1 new session.")
    expect(seen.page.locator("#announcer")).to_have_text("1 new session.")
    seen.page.get_by_role("button", name="Show the list anew").click()
    seen.expect_ids("brand-new")
    expect(seen.page.get_by_role("note")).to_have_count(0)
