"""The compare page in one metric: letters, differences by slice that lead to their samples, and Markdown."""

import re

import httpx
import polars as pl
from playwright.sync_api import expect

from evalake.decisions.compare import compare_sides
from evalake.server.viewer.sides import _letters
from tests.integration.server.viewer.conftest import Open
from tests.integration.server.viewer.world import BAD, GOOD, World

LOOKS = ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark"))


def test_letters_and_slices_are_those_of_the_command(http: httpx.Client, world: World) -> None:
    third = f"{world.changed}:{GOOD}-2"
    asked = {"run": world.verdicts, "side": [GOOD, BAD, third], "metric": "malicious_detection_rate"}
    page = http.get("/compare/sides", params=asked).json()
    rows = compare_sides(world.lake, GOOD, BAD, run_id=world.verdicts, metric="malicious_detection_rate").rows
    known = {(row["slice"], row["slice_value"]): -row["difference"] for row in rows.iter_rows(named=True)}
    assert {(part["slice"], part["slice_value"]): part["cells"][1]["difference"] for part in page["parts"]} == known
    assert [judged["letters"] for judged in page["letters"]] == [["a", "a", "a"]]
    assert [side["run_id"] for side in page["sides"]] == [world.verdicts, world.verdicts, world.changed]
    assert "| malicious\\_detection\\_rate | " in page["markdown"]
    assert http.get("/compare/sides", params={"side": [world.verdicts, world.changed]}).status_code == 400


def test_sides_that_are_apart_share_no_letter() -> None:
    """By the pairs of one judge, as in a ranking: of both judges together p would be .06."""
    pairs = [(0, 1, 0.9, 0.2, 0.01), (0, 2, 0.9, 0.5, 0.2), (1, 2, 0.2, 0.5, 0.3)]
    rows = pl.DataFrame(pairs, schema=["i", "j", "value_a", "value_b", "p"], orient="row")
    ends = {"difference": 0.5, "bound_low": 0.5, "bound_high": 0.5, "ci_low": 0.1, "ci_high": 0.9, "units": 50}
    judged = [
        rows.with_columns(judge=pl.lit(name), **{key: pl.lit(each) for key, each in ends.items()}) for name in "jk"
    ]
    assert _letters(pl.concat(judged), "j", 3) == ["a", "b", "ab"]
    unknown = judged[0].with_columns(value_a=pl.lit(None, pl.Float64), difference=pl.lit(None, pl.Float64))
    assert _letters(unknown.head(1), "j", 3) == ["–", "a", "–"]


def test_a_number_leads_to_its_samples(look: Open, address: str, world: World) -> None:
    sides = f"?run={world.verdicts}&a={GOOD}&b={BAD}&more={world.changed}:{GOOD}-2&metric=malicious_detection_rate"
    visit = look(f"{address}/compare{sides}")
    expect(visit.page.get_by_text("Sides that share no letter")).to_be_visible()
    assert visit.obstacles_of(LOOKS) == []
    visit.page.get_by_label("Corrected by people").check()
    expect(visit.page).to_have_url(re.compile("corrected=true"))
    visit.page.reload()
    expect(visit.page.get_by_label("Corrected by people")).to_be_checked()
    visit.page.locator(".heat").get_by_role("row", name="file-read").get_by_role("link").nth(1).click()
    expect(visit.page.get_by_label("Category")).to_have_value("file-read")
    expect(visit.page.get_by_label("Model", exact=True)).to_have_value(BAD)
