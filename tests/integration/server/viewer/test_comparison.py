"""Comparisons: sides, pairs and what was decided by them."""

import re
from pathlib import Path

import httpx
import polars as pl
import pytest
from playwright.sync_api import expect

from evalake.contracts.audit import audit
from evalake.contracts.tables import CONTRACT_CHECKS, GATE_DECISIONS, SAMPLES
from evalake.decisions.compare import compare_sides
from evalake.decisions.explain import explain
from evalake.server.pages import FOLDER
from evalake.server.viewer.comparison import _letters
from evalake.server.viewer.export import bundle
from evalake.server.viewer.overview import last_checks
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.publish import check_rows
from tests.integration.cli.command import evalake_here
from tests.integration.server.viewer.conftest import Open
from tests.integration.server.viewer.world import BAD, COMMANDS, GOOD, TAG, World
from tests.integration.storage.recorded_lake import recorded_lake

# Comparisons: the rows that `evalake compare` prints, and the pairs of answers behind them.


@pytest.mark.parametrize("corrected", [False, True])
def test_the_rows_are_those_of_the_command(http: httpx.Client, world: World, corrected: bool) -> None:
    told = http.get("/compare", params={"a": GOOD, "b": BAD, "run": world.verdicts, "corrected": corrected}).json()
    compared = compare_sides(world.lake, GOOD, BAD, run_id=world.verdicts, corrected=corrected)

    assert (told["rows"], told["warnings"]) == (compared.rows.to_dicts(), compared.remarks)
    assert any("not corrected" in remark for remark in compared.remarks) == corrected, compared.remarks
    assert told["suite"] == "command_guard"


@pytest.mark.parametrize(("kind", "total"), [("differences", 10), ("all", COMMANDS), ("to_a", 5), ("to_b", 5)])
def test_pairs_of_a_kind(http: httpx.Client, world: World, kind: str, total: int) -> None:
    sides = {"a": GOOD, "b": BAD, "run": world.verdicts}
    first = http.get("/compare/items", params={**sides, "kind": kind, "limit": 4}).json()

    assert (first["total"], first["answered"], len(first["pairs"]), first["next"]) == (total, COMMANDS, 4, 4)
    assert {(pair["a"]["model"], pair["b"]["model"]) for pair in first["pairs"]} == {(GOOD, BAD)}


def test_models_of_two_runs_are_paired_by_sample(http: httpx.Client, world: World) -> None:
    sides = {"a": f"{world.verdicts}:{GOOD}", "b": f"{world.changed}:{GOOD}-2"}
    pairs = http.get("/compare/items", params={**sides, "kind": "all", "limit": 1}).json()

    assert (pairs["run_a"], pairs["run_b"], pairs["answered"]) == (world.verdicts, world.changed, COMMANDS)


def test_several_sides_stand_in_columns(http: httpx.Client, world: World) -> None:
    sides = [GOOD, BAD, f"{world.changed}:{GOOD}-2"]
    asked: dict[str, str | int | list[str]] = {"side": sides, "run": world.verdicts, "limit": 4}
    first = http.get("/compare/columns", params=asked).json()
    every = http.get("/compare/columns", params={**asked, "kind": "all"}).json()

    assert first["runs"] == [world.verdicts, world.verdicts, world.changed]
    assert (first["answered"], every["total"], every["next"], len(every["rows"])) == (COMMANDS, COMMANDS, 4, 4)
    assert 10 <= first["total"] < COMMANDS
    for row in first["rows"]:
        assert [answer["model"] for answer in row["answers"]] == [GOOD, BAD, f"{GOOD}-2"]
        assert len({answer["verdict"] for answer in row["answers"]}) > 1


def test_sides_of_several_suites_have_no_columns(http: httpx.Client, world: World) -> None:
    answer = http.get("/compare/columns", params={"side": [world.verdicts, world.audits]})
    assert (answer.status_code, "several suites" in answer.text) == (400, True)


def test_what_does_not_exist_or_compare_is_said(http: httpx.Client, world: World) -> None:
    unknown = http.get("/compare", params={"a": "nobody", "b": BAD, "run": world.verdicts})
    other = http.get("/compare", params={"a": world.verdicts, "b": world.audits})

    assert (unknown.status_code, other.status_code) == (404, 400)
    assert "nobody" in unknown.json()["detail"]
    assert "no model in common" in other.json()["detail"]


def test_models_are_of_the_newest_run_with_the_tag(http: httpx.Client, world: World) -> None:
    sides = {"a": GOOD, "b": BAD, "tag": TAG}
    assert http.get("/compare", params=sides).json()["rows"]
    pairs = http.get("/compare/items", params=sides).json()
    assert (pairs["run_a"], pairs["run_b"]) == (world.verdicts, world.verdicts)
    columns = http.get("/compare/columns", params={"side": [GOOD, BAD], "tag": TAG}).json()
    assert columns["runs"] == [world.verdicts, world.verdicts]
    assert [http.get(to, params={**sides, "tag": "none"}).status_code for to in ("/compare", "/explain")] == [404] * 2


# The compare page in one metric: letters, differences by slice that lead to their samples, and Markdown.

LOOKS = ((1440, "light"), (390, "dark"))


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


# Pages of decisions: a difference with the rows behind its parts, and what gates decided over time.

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


# The rules of each table as they fared when it was checked last.


def test_tables_that_broke_a_rule_come_first_with_every_rule_in_words(http: httpx.Client) -> None:
    runs, samples = http.get("/checks").json()
    assert (runs["table"], runs["broken"], samples["table"], samples["broken"]) == ("runs", 1, "samples", 0)
    (broken,) = [rule for rule in runs["rules"] if not all(result["passed"] for result in rule["results"])]
    assert broken["demands"] == "cost_usd is at least 0"
    assert broken["results"][0]["rows_failed"] == runs["rows"] == 3
    assert [rule["rule_id"] for rule in samples["rules"]] == [rule.id for rule in SAMPLES.all_rules]


def test_of_two_checks_the_newer_version_counts(tmp_path: Path) -> None:
    lake = recorded_lake(tmp_path)
    rows = lake.frame(SAMPLES).collect()
    for version, some in ((1, rows.head(3)), (2, rows)):
        land(lake, CONTRACT_CHECKS, check_rows(SAMPLES, audit(some, SAMPLES).results, table_version=version))
    (table,) = last_checks(lake)
    assert (table.version, table.rows, table.broken) == (2, rows.height, 0)


def test_a_lake_that_nobody_checked_has_none(tmp_path: Path) -> None:
    assert last_checks(Lake(str(tmp_path / "lake"))) == []


# Runs and metrics of every suite, over HTTP.


def test_runs_and_metrics_are_filtered_by_tag(http: httpx.Client, world: World) -> None:
    tagged = http.get("/runs", params={"tag": TAG}).json()
    for path in ("/runs", "/metrics", f"/runs/{world.verdicts}/values", "/gates"):  # misspelt: it would list everything
        assert http.get(path, params={"tags": TAG}).status_code == 422
    assert ([run["run_id"] for run in tagged["runs"]], tagged["tags"]) == ([world.verdicts], [TAG])
    assert {point["run_id"] for point in http.get("/metrics", params={"tag": TAG}).json()["points"]} == {world.verdicts}
    assert http.get("/metrics", params={"tag": "none"}).json()["points"] == []


# The viewer alone: its pages under the strict policy, and for whom it answers.


def test_every_address_of_the_pages_is_the_page_under_the_policy(address: str) -> None:
    for path in ("/runs", "/runs/x", "/runs/x/items", "/runs/x/items/y", "/compare", "/sql"):
        page = httpx.get(address + path, timeout=600)
        assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert 'data-only="viewer"' in page.text
        assert not re.search(r"<script(?![^>]*src=)", page.text)


def test_the_first_page_is_the_runs(address: str) -> None:
    assert httpx.get(address, timeout=600).headers["location"] == "/runs"


def test_it_has_nothing_that_writes(address: str) -> None:
    paths = httpx.get(f"{address}/api/v1/openapi.json", timeout=600).json()["paths"]

    asking = {name for name, path in paths.items() if path.keys() != {"get"}}
    assert asking == {"/api/v1/sql", "/api/v1/sql/file"}  # in SQL, of which only what reads is run


def test_with_a_token_nothing_is_read_without_it(locked_address: str) -> None:
    runs = f"{locked_address}/api/v1/runs"

    assert httpx.get(runs, timeout=600).status_code == 401
    assert httpx.get(runs, headers={"authorization": "Bearer right"}).status_code == 200


# Modules as one script: all that they import, in order, and nothing left that only a module may say.


def test_each_module_stands_once_before_those_that_import_it(tmp_path: Path) -> None:
    modules = {
        "main": 'import {two} from "/js/both.js";\nimport {one} from "/js/one.js";\nshow(one, two);\n',
        "both": 'import {one} from "/js/one.js";\n\nexport async function two() {\n  return one;\n}\n',
        "one": "export const one = 1;\nexport class Other {}\n",
    }
    (tmp_path / "js").mkdir()
    for name, text in modules.items():
        (tmp_path / "js" / f"{name}.js").write_text(text)

    expected = Path(__file__).with_name("bundle.js").read_text()
    assert bundle(tmp_path, "/js/main.js").splitlines() == expected.splitlines()


def test_nothing_of_the_pages_is_left_that_only_a_module_may_say() -> None:
    assert not re.search(r"^\s*(import|export)\b", bundle(FOLDER, "/js/exported/main.js"), re.MULTILINE)
