"""Score Session and statistics, as somebody sees them who waits, and the runs and metrics of every suite."""

import json
import re
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.dashboard.browsing import session_path
from tests.e2e.dashboard.conftest import Open
from tests.e2e.dashboard.judge import NO_TOTAL, Judge
from tests.e2e.dashboard.world import HOSTILE, HOSTILE_ID, OLD_CRITERIA, World
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e


def test_scores_a_session_live(visit: Open, judge: Judge) -> None:
    page = visit(session_path("live-good")).page
    with judge.held_back():
        page.get_by_role("button", name="Score session").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(page.locator(".progress")).to_contain_text("Analysing the methodology")
        expect(page.locator("#announcer")).to_have_text("Analysing the methodology")
        expect(page.get_by_role("button", name="Scoring …")).to_be_focused()
    expect(page.locator(".badge.large")).to_contain_text("68")
    expect(page.locator("#announcer")).to_have_text("Scoring is complete: 68 of 100")
    expect(page.get_by_text("pg-stat-activity").first).to_be_visible()
    expect(page.get_by_text("17 / 25")).to_have_count(2)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("button", name="Score again")).to_be_visible()


def test_a_failed_scoring_says_why_and_can_be_tried_again(visit: Open, judge: Judge) -> None:
    page = visit(session_path("live-bad")).page
    with judge.saying(NO_TOTAL):
        page.get_by_role("button", name="Score session").click()
        expect(page.get_by_role("alert")).to_contain_text("ended in no total")
    expect(page.locator("#announcer")).to_contain_text("Scoring has failed")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".badge.large")).to_contain_text("68")
    expect(page.locator(".history li")).to_have_count(2)


def test_scoring_again_asks_first(visit: Open) -> None:
    page = visit(session_path("live-again")).page
    page.get_by_role("button", name="Score again").click()
    dialog = page.get_by_role("dialog", name="Score this session again?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Score again")).to_be_focused()
    expect(page.locator(".badge.large")).to_contain_text("20")
    page.get_by_role("button", name="Score again").click()
    dialog.get_by_role("button", name="Score again").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator(".badge.large")).to_contain_text("68")
    expect(page.locator(".history li")).to_have_count(2)


def test_a_scoring_that_somebody_else_began_is_shown(visit: Open, world: World) -> None:
    page = visit(session_path("live-conflict")).page
    expect(page.get_by_role("button", name="Score session")).to_be_visible()
    row = world.land(world.pending("live-conflict"))
    expect(page.get_by_role("button", name="Scoring …")).to_be_visible()
    expect(page.locator(".progress")).to_contain_text("Waiting to begin")
    row = world.land(row, status="in_progress")
    expect(page.locator(".progress")).to_contain_text("Analysing the methodology")
    why = {"error_kind": "lost", "error_message": "its process died"}
    world.land(row, status="failed", completed_at=row["asked_at"], **why)
    expect(page.get_by_role("alert")).to_contain_text("its process died")


def test_a_scoring_is_cancelled_and_its_process_ended(visit: Open, judge: Judge, address: str) -> None:
    page = visit(session_path("live-cancel")).page
    with judge.held_back():
        page.get_by_role("button", name="Score session").click()
        expect(page.locator(".progress")).to_contain_text("Analysing the methodology")
        page.get_by_role("button", name="Cancel the scoring").click()
        expect(page.get_by_role("alert")).to_contain_text("it was cancelled by api-client")
        expect(page.get_by_role("progressbar")).to_have_count(0)
        expect(page.get_by_role("button", name="Try again")).to_be_focused()
        score = httpx.get(f"{address}/api/v1/scoring/sessions/live-cancel/score", timeout=600).json()
        prefect = httpx.get(f"{address}/api/v1/status", timeout=600).json()["prefect_url"]

        def ended() -> bool:
            run = httpx.get(f"{prefect}/api/flow_runs/{score['flow_run_id']}", timeout=600).json()
            return bool(run["state_type"] == "CANCELLED")

        wait_until(ended, "the end of the flow run")
    assert httpx.get(f"{address}/api/v1/scoring/sessions/live-cancel/score", timeout=600).json()["status"] == "failed"


def test_the_price_of_many_scorings_is_told_first(visit: Open, world: World) -> None:
    seen = visit("/")
    page = seen.page
    button = page.get_by_role("button", name="Rescore obsolete ones")
    button.click()
    dialog = page.get_by_role("dialog", name="Rescore all under obsolete criteria?")
    price = re.compile(r"1 session: about 2 calls of hosted_vllm/judge, about \$\d+\.\d+ to \$\d+\.\d+ in all")
    expect(dialog).to_contain_text(price)
    dialog.get_by_role("button", name="Cancel").click()
    expect(seen.row("outdated")).to_contain_text("outdated criteria")
    button.click()
    dialog.get_by_role("button", name="Score 1 session").click()
    expect(page.locator(".message.info")).to_contain_text("1 scoring asked for.")
    expect(seen.row("outdated").locator(".badge")).to_contain_text("68")
    button.click()
    expect(page.locator(".message.info")).to_contain_text("No score was made under obsolete criteria.")
    # The newest score is an outdated one again, as the other tests know it
    world.score("outdated", 61, replicate=2, criteria_hash=OLD_CRITERIA, completed_at=datetime.now(UTC))


def test_what_the_service_refuses_is_a_message(visit: Open, address: str) -> None:
    page = visit(session_path("never-scored")).page
    page.route("**/score", lambda route: route.fulfill(status=503, json={"detail": "the service is shutting down"}))
    page.get_by_role("button", name="Score session").click()
    expect(page.get_by_role("alert")).to_contain_text("the service is shutting down")
    page.unroute("**/score")
    page.route("**/score", lambda route: route.abort())
    page.get_by_role("alert").get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    asked = httpx.get(f"{address}/api/v1/scoring/sessions/never-scored/score", timeout=600)
    assert asked.status_code == 404  # nothing was begun


def test_trends_show_what_the_statistics_say(visit: Open, address: str) -> None:
    page = visit("/trends").page
    # Distribution, days, missing tools, patterns of failure, and the roadmap's tools and patterns
    expect(page.locator(".plot svg")).to_have_count(6)
    said = httpx.get(f"{address}/api/v1/scoring/statistics", timeout=600).json()
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
    expect(runs.get_by_role("row").nth(1)).to_contain_text(HOSTILE.partition("/script")[0])  # the list cuts messages
    expect(runs.get_by_role("row").nth(2)).to_contain_text("$0.25")
    page.get_by_label("Suite", exact=True).select_option("solidity_audit")
    expect(page.get_by_text("No run fits these choices.")).to_be_visible()
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
