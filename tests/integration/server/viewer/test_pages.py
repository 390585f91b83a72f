"""The viewer's pages in a real browser: walked from the runs to a sample, at every width, light and dark."""

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from evalake.server.settings import Settings
from tests.integration.server.viewer.conftest import Open, served
from tests.integration.server.viewer.world import BAD, GOOD, HOSTILE, TAG, World
from tests.integration.storage.recorded_lake import lake_of_nights

LOOKS = ((1440, "light"), (1024, "dark"), (390, "light"))


def test_every_page_is_readable_and_fits(look: Open, address: str, world: World) -> None:
    visit = look(address)
    obstacles = {}
    sides = f"?run={world.verdicts}&a={GOOD}&b={BAD}"
    run = f"/runs/{world.audits}"
    paths = (
        "/runs",
        run,
        f"{run}/items",
        f"/runs/{world.verdicts}/items",
        f"/compare{sides}",
        f"/compare{sides}&more={world.changed}:{GOOD}-2",
        "/sql",
        "/checks",
        f"/metrics?run={world.verdicts}",
        f"/metrics?run={world.audits}",
    )
    for turn, path in enumerate(paths):
        visit.go(path)
        obstacles[path] = visit.obstacles_of(LOOKS, turn)
    visit.go(f"{run}/items")
    visit.page.get_by_role("link", name="bank-1").click()
    expect(visit.page.get_by_role("heading", name="Ground truth")).to_be_visible()
    obstacles["item"] = visit.obstacles_of(LOOKS)

    assert obstacles == {path: [] for path in obstacles}


def test_walking_from_the_runs_to_a_sample_and_comparing(look: Open, address: str, world: World) -> None:
    page = look(f"{address}/runs").page
    expect(page.get_by_role("columnheader", name="Flow run")).to_have_count(0)  # there is no Prefect to link
    page.get_by_role("link", name=world.verdicts).click()
    page.get_by_role("link", name="Only wrong answers").click()
    page.get_by_label("Verdict", exact=True).select_option("ALLOW")
    expect(page.locator("tbody a.id")).to_have_text([f"sample-{number:02d}" for number in range(0, 30, 6)])
    page.get_by_role("link", name="sample-00").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-00")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-06")
    page.get_by_role("link", name=world.verdicts).click()
    page.get_by_role("link", name="Compare models").click()
    expect(page.get_by_role("heading", name="Difference, A − B")).to_be_visible()
    page.get_by_role("button", name="Compare", exact=True).first.click()
    expect(page.locator("mark").first).to_be_visible()


def test_the_samples_are_a_matrix_walked_by_keys_filtered_by_an_expression_and_saved(
    look: Open, address: str, world: World
) -> None:
    visit = look(f"{address}/runs/{world.verdicts}/items")
    page = visit.page
    page.get_by_label("Filter", exact=True).fill('verdict = "ALLOW" and missed')
    page.keyboard.press("Enter")
    expect(page.locator("tbody a.id")).to_have_text([f"sample-{number:02d}" for number in range(0, 30, 6)])
    expect(page).to_have_url(re.compile("filter=verdict"))
    page.get_by_role("button", name="Compact").click()
    page.get_by_text("Columns: models").click()
    page.get_by_label("Input", exact=True).uncheck()
    page.reload()
    expect(page.get_by_role("columnheader")).to_have_text(["Sample", "bad", "good"])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download JSONL").click()
    lines = [json.loads(line) for line in saved.value.path().read_text().splitlines()]
    assert [line["sample_id"] for line in lines] == [f"sample-{number:02d}" for number in range(0, 30, 6)]
    page.locator("h1").focus()
    for key in ("j", "j", "l", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-06")
    expect(page.locator(".answer[data-from] h2")).to_contain_text(BAD)
    expect(page.locator(".answer[data-from]")).to_be_in_viewport()
    page.keyboard.press("u")
    expect(page.get_by_label("Filter", exact=True)).to_have_value('verdict = "ALLOW" and missed')
    page.get_by_label("Filter", exact=True).fill(f"verdict = {HOSTILE}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("the filter is wrong at character 11")
    page.get_by_label("Filter", exact=True).fill("")
    page.keyboard.press("Enter")
    expect(page.locator("tbody a.id").nth(1)).to_have_text("sample-01")
    page.get_by_label("Beside another run").select_option(world.changed)
    expect(page.get_by_role("columnheader", name=world.changed)).to_be_visible()
    assert visit.obstacles_of(LOOKS) == []


def test_a_third_side_gets_a_column_and_statistics_of_its_own(look: Open, address: str, world: World) -> None:
    page = look(f"{address}/compare?run={world.verdicts}&a={GOOD}&b={BAD}").page
    page.get_by_label("One more").fill(f"{world.changed}:{GOOD}-2")
    page.keyboard.press("Tab")
    expect(page.get_by_role("heading", name="Difference, A − C")).to_be_visible()
    expect(page.get_by_role("columnheader", name=f"C {world.changed}:{GOOD}-2")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Compare", exact=True).first.click()
    expect(page.get_by_role("group", name="Reply of C")).to_be_visible()


def test_the_page_of_the_address_is_marked_among_all(look: Open, address: str) -> None:
    page = look(f"{address}/sql").page
    expect(page.locator("nav [aria-current=page]")).to_have_text("SQL")
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("nav [aria-current=page]")).to_have_text("Runs")


def test_metrics_of_a_run_are_looked_at_against_each_other_and_by_their_slices(
    look: Open, address: str, world: World
) -> None:
    page = look(f"{address}/runs/{world.verdicts}").page
    page.get_by_role("link", name="Explore its metrics").click()
    expect(page.get_by_role("heading", name="malicious detection rate against balanced accuracy")).to_be_visible()
    expect(page.locator(".plot circle").first).to_be_visible()
    page.get_by_label("Against", exact=True).select_option("harmless_acceptance_rate")
    expect(page.get_by_role("heading", name="harmless acceptance rate against balanced accuracy")).to_be_visible()
    page.get_by_label("By its slices", exact=True).select_option("malicious_detection_rate")
    page.get_by_label("Slice", exact=True).select_option("category")
    page.reload()
    expect(page.get_by_role("heading", name="malicious detection rate by category")).to_be_visible()
    expect(page.get_by_label("Against", exact=True)).to_have_value("harmless_acceptance_rate")
    page.get_by_role("link", name="Where models differ").click()
    expect(page.locator("tbody a.id").first).to_be_visible()


def test_how_sure_a_model_was_is_drawn_where_its_suite_says_how(look: Open, address: str, world: World) -> None:
    page = look(f"{address}/metrics?run={world.audits}").page
    expect(page.get_by_role("heading", name="Reliability: how often right, against how sure")).to_be_visible()
    page.goto(f"{address}/metrics?run={world.verdicts}")
    expect(page.locator(".plot").first).to_be_visible()
    expect(page.get_by_role("heading", name="Reliability: how often right, against how sure")).to_have_count(0)


def test_a_tag_filters_the_runs_their_metrics_and_what_is_compared(look: Open, address: str, world: World) -> None:
    page = look(f"{address}/runs").page
    figure = page.locator("section.figure", has=page.get_by_role("heading", name="balanced accuracy"))
    expect(figure.locator(".legend li")).to_have_count(3)
    page.get_by_label("Tag", exact=True).select_option(TAG)
    expect(page.get_by_role("table", name="Runs, newest first").get_by_role("rowheader")).to_contain_text(
        [world.verdicts]
    )
    expect(figure.locator(".legend li")).to_have_count(2)
    for path in ("/metrics", f"/compare?a={GOOD}&b={BAD}"):
        page.goto(f"{address}{path}")
        page.get_by_label("Tag", exact=True).select_option(TAG)
        expect(page.get_by_label("Run", exact=True).get_by_role("option", name=world.audits)).to_have_count(0)
        page.reload()
        expect(page.get_by_label("Tag", exact=True)).to_have_value(TAG)
        expect(page.get_by_label("Run", exact=True)).to_contain_text(world.verdicts)
    expect(page.get_by_role("heading", name="Difference, A − B")).to_be_visible()


def test_the_data_docs_show_what_broke_first_and_every_rule(look: Open, address: str) -> None:
    page = look(f"{address}/runs").page
    page.get_by_role("link", name="data docs of the last check").click()
    expect(page.get_by_role("heading", level=2)).to_have_text(["runs: 1 rule broken", "samples: ok"])
    expect(page.get_by_role("row", name="cost_usd is at least 0")).to_contain_text("broken: 3 rows")
    page.locator("summary").last.click()
    expect(page.get_by_role("row", name="sample_id holds more than white space")).to_contain_text("kept")


def test_a_step_of_a_trend_leads_to_the_samples_behind_it(look: Open, tmp_path: Path) -> None:
    with served(Settings(lake=lake_of_nights(tmp_path))) as where:
        page = look(f"{where}/runs?suite=command_guard&metric=accuracy").page
        page.get_by_text("The numbers").click()
        page.get_by_role("link", name="-0.125 [").click()
        expect(page.get_by_role("heading", name="Difference, A − B")).to_be_visible()
        expect(page.get_by_role("button", name="Compare", exact=True)).to_have_count(5)
