"""Questions in SQL: what the command answers, within its limits, for whom the viewer answers; and the console."""

import io
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from playwright.sync_api import expect

from evalake.server.viewer import sql
from evalake.storage.lake import Lake
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts
from tests.integration.server.viewer.conftest import Open
from tests.integration.server.viewer.world import HOSTILE, World

BY_LABEL = "select model, label, count(*) as rows from command_guard_results group by all order by all"


def all_examples(lake: Lake) -> list[str]:
    """The queries that suites declare, in order."""
    return [example.query for example in sql.askable(lake).examples]


def asked(http: httpx.Client, text: str, status: int = 200) -> dict[str, Any]:
    """The answer to a query."""
    answer = http.post("/sql", json={"query": text})
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_the_answer_is_that_of_the_command(http: httpx.Client, world: World) -> None:
    told = asked(http, BY_LABEL)

    assert told["rows"] == [list(row) for row in query(world.lake, all_contracts(), BY_LABEL).iter_rows()]
    assert [(each["name"], each["is_number"]) for each in told["columns"]] == [
        ("model", False),
        ("label", False),
        ("rows", True),
    ]
    assert (told["total"], told["cut_cells"]) == (6, 0)


def test_values_that_a_browser_would_read_wrongly_are_text(http: httpx.Client) -> None:
    told = asked(http, "select 9007199254740993 as big, 'nan'::double as nan, ['a'] as list, null as none")

    assert told["rows"] == [["9007199254740993", None, '["a"]', None]]


def test_of_a_large_result_the_first_rows_are_told_and_all_are_counted(http: httpx.Client) -> None:
    told = asked(http, "select i from range(5000) t(i)")

    assert (len(told["rows"]), told["rows"][-1], told["total"]) == (sql.MOST_ROWS, [sql.MOST_ROWS - 1], 5000)


def test_long_texts_are_cut_and_do_not_add_up_without_end(http: httpx.Client) -> None:
    told = asked(http, "select repeat('x', 100000) as long from range(900)")

    assert {len(row[0]) for row in told["rows"]} == {sql.LONGEST_TEXT}
    assert len(told["rows"]) == told["cut_cells"] == sql.MOST_CHARACTERS // sql.LONGEST_TEXT
    assert told["total"] == 900


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop table runs", "only queries that read are allowed, not DROP"),
        ("select 1; select 2", "give one query"),
        ("select * from read_csv('/etc/passwd')", "the query failed"),
        ("from nowhere", "nowhere"),
    ],
)
def test_what_is_wrong_or_refused_is_said(http: httpx.Client, text: str, said: str) -> None:
    assert said in asked(http, text, 400)["detail"]


def test_what_is_no_query_is_malformed(http: httpx.Client) -> None:
    assert http.post("/sql", json={"query": ""}).status_code == 422
    assert http.post("/sql", json={"query": "from runs", "lake": "/etc"}).status_code == 422


def test_too_many_at_once_are_told_to_wait(http: httpx.Client) -> None:
    for _ in range(sql.AT_ONCE):
        assert sql._running.acquire(blocking=False)
    try:
        answer = http.post("/sql", json={"query": "from runs"})
    finally:
        for _ in range(sql.AT_ONCE):
            sql._running.release()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert "2 queries are running already" in answer.json()["detail"]


def test_a_file_has_every_row(http: httpx.Client) -> None:
    def file(**wanted: object) -> httpx.Response:
        return http.post("/sql/file", json={"query": "select '=' || i as i from range(5000) t(i)", **wanted})

    parquet = file(format="parquet")
    assert parquet.headers["content-disposition"] == 'attachment; filename="result.parquet"'
    assert pl.read_parquet(io.BytesIO(parquet.content))["i"].to_list() == [f"={number}" for number in range(5000)]
    assert file(format="csv").text.splitlines() == ["i", *(f"={number}" for number in range(5000))]
    assert file(format="csv", spreadsheet_safe=True).text.splitlines()[1] == "'=0"


def test_a_file_of_a_wrong_query_is_a_reason(http: httpx.Client) -> None:
    answer = http.post("/sql/file", json={"query": "from nowhere", "format": "csv"})

    assert answer.status_code == 400
    assert "nowhere" in answer.json()["detail"]


def test_the_tables_and_the_queries_that_suites_declare_are_told(http: httpx.Client) -> None:
    told = http.get("/sql").json()
    columns = {table["name"]: [each["column"] for each in table["columns"]] for table in told["tables"]}

    assert "sample_hash" in columns["samples"]
    assert "overlaps_first" in columns["leaderboard"]
    for example in told["examples"]:
        asked(http, example["query"])


def test_nobody_asks_without_the_token_nor_from_another_site(locked_address: str, address: str) -> None:
    body = {"query": "from runs"}

    assert httpx.post(f"{locked_address}/api/v1/sql", json=body).status_code == 401
    right = {"authorization": "Bearer right"}
    assert httpx.post(f"{locked_address}/api/v1/sql", json=body, headers=right, timeout=600).status_code == 200
    elsewhere = {"origin": "https://elsewhere.example"}
    assert httpx.post(f"{address}/api/v1/sql", json=body, headers=elsewhere).status_code == 401


def test_a_query_is_run_paged_and_saved(look: Open, address: str, tmp_path: Path) -> None:
    visit = look(f"{address}/sql")
    page = visit.page
    page.get_by_role("textbox").fill("select i, i * i as square from range(120) t(i)")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Result")).to_contain_text("120 rows in")
    rows = page.get_by_role("table", name="Rows of the result").locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(rows.first).to_have_text("51502500")
    assert "query=select+i" in page.url
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    saved.value.save_as(tmp_path / "rows.csv")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 121
    assert visit.obstacles() == []


def test_a_link_fills_the_query_in_and_its_reader_runs_it(look: Open, address: str) -> None:
    page = look(f"{address}/sql?query=select+42+as+answer").page
    expect(page.get_by_role("textbox")).to_have_value("select 42 as answer")
    assert page.get_by_role("table").count() == 0
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell")).to_have_text("42")


def test_an_example_and_a_table_are_there_to_begin_with(look: Open, address: str, world: World) -> None:
    page = look(f"{address}/sql").page
    page.get_by_label("Examples").select_option(index=1)
    expect(page.get_by_role("textbox")).to_have_value(all_examples(world.lake)[0])
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text(" rows in ")
    page.get_by_role("complementary", name="Tables").get_by_text("leaderboard").click()
    expect(page.get_by_text("overlaps_first")).to_be_visible()


def test_what_is_wrong_is_said_in_words_and_mended(look: Open, address: str) -> None:
    page = look(f"{address}/sql?query=delete+from+runs").page
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("only queries that read are allowed, not DELETE")
    page.get_by_role("textbox").fill("from runs")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("3 rows in")


def test_hostile_text_stays_text(look: Open, address: str) -> None:
    page = look(f"{address}/sql").page
    page.get_by_role("textbox").fill(
        f"select '{HOSTILE}' as \"<b>name</b>\", reason from command_guard_results limit 3"
    )
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("columnheader", name="<b>name</b>")).to_be_visible()
    page.locator("tbody details summary").first.click()
    expect(page.locator("tbody pre").first).to_have_text(HOSTILE)
    assert page.locator("main img, main script, main b").count() == 0
