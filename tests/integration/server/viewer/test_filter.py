"""A filter expression: what it keeps, where it is refused, and the file of what it keeps."""

import io
import json
from pathlib import Path

import httpx
import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.core.errors import LakeError
from evalake.server.settings import WrongQueryError
from evalake.server.viewer.export import WantedFile, file_of, items_file
from evalake.server.viewer.expression import Column, compile_filter
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from tests.cases import cases_beside
from tests.integration.server.viewer.test_item import items, names
from tests.integration.server.viewer.world import BAD, GOOD, HOSTILE, World
from tests.integration.storage.test_migrations import no_file_longer_than

CASES = cases_beside(__file__, "filters.json")

COLUMNS = {
    "model": Column(pl.col("model"), "text"),
    "cost": Column(pl.col("cost_usd"), "number"),
    "correct": Column(pl.col("correct"), "yes or no"),
    "tokens": Column(pl.col("tokens"), "number"),
}
ROWS = pl.DataFrame(
    {
        "model": ["openai/GPT-4o", 'it\'s "quoted"', None, "x' or 1=1 --", "Zürich"],
        "cost_usd": [0.02, None, 0.5, -1.0, 0.0],
        "correct": [True, False, None, True, None],
        "tokens": [1, 2, None, 4, 5],
    }
)


@pytest.mark.parametrize(("text", "kept"), CASES["kept"])
def test_a_filter_keeps_what_it_says(text: str, kept: list[int]) -> None:
    condition = compile_filter(text, COLUMNS)

    assert ROWS.with_row_index("row").filter(condition)["row"].to_list() == kept


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        *CASES["refused"],
        ("(" * 900 + "cost > 1", "at character 21", "levels"),
        ("not " * 200 + "correct", "at character 81", "levels"),
        ("correct or " * 90 + "correct", "", ""),
        ("x" * 1001, "1001 characters", "1000"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_in_one_sentence_that_says_where(
    text: str, where: str, reason: str
) -> None:
    if not where:
        compile_filter(text, COLUMNS)
        return
    with pytest.raises(WrongQueryError) as refused:
        compile_filter(text, COLUMNS)
    assert where in str(refused.value)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 300


def test_one_answer_must_meet_a_filter_and_is_marked(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, filter='verdict = "ALLOW" and missed and model ~ "BAD"', limit=500)
    [good, bad] = sorted(page["items"][0]["answers"], key=lambda each: each["model"] == BAD)

    assert names(page) == [f"sample-{number:02d}" for number in range(0, 30, 6)]
    assert (good["matches"], bad["matches"]) == (False, True)
    assert items(http, world.verdicts, filter='verdict = "ALLOW" and missed and model ~ "good"')["total"] == 0
    assert items(http, world.verdicts, filter="latency >= 2800 and sample !~ '29'", q="28")["total"] == 1


def test_a_column_that_the_suite_lacks_and_hostile_text_are_refused_over_http(http: httpx.Client, world: World) -> None:
    for text in (HOSTILE, "nothing = 1", "') union select * from runs --"):
        answer = http.get(f"/runs/{world.verdicts}/items", params={"filter": text})
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("the filter is wrong at character ")


def test_the_list_has_the_beginnings_of_replies_and_the_answers_of_another_run(
    http: httpx.Client, world: World
) -> None:
    page = items(http, world.verdicts, beside=world.changed, limit=1)
    answers = page["items"][0]["answers"]

    assert [(each["model"], each["run_id"]) for each in answers] == [
        (BAD, None),
        (GOOD, None),
        (f"{GOOD}-2", world.changed),
    ]
    assert [json.loads(each["reply"])["action"] for each in answers] == ["ALLOW", "BLOCK", "BLOCK"]
    refused = http.get(f"/runs/{world.verdicts}/items", params={"beside": world.audits})
    assert refused.status_code == 400
    assert "solidity_audit" in refused.json()["detail"]


def test_items_are_sorted_by_the_answers_of_one_column(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, sort="answer", of=BAD, limit=500)
    verdicts = [each["verdict"] for item in page["items"] for each in item["answers"] if each["model"] == BAD]

    assert verdicts[:10] == ["ALLOW"] * 10
    assert set(verdicts[10:-1]) == {"BLOCK"}


def test_what_is_filtered_is_a_file_of_each_kind(http: httpx.Client, world: World) -> None:
    def file(style: str, **wanted: str) -> bytes:
        answer = http.get(f"/runs/{world.verdicts}/items.file", params={"format": style, **wanted})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"] == f'attachment; filename="answers.{style}"'
        return answer.content

    wanted = {"filter": "verdict = 'ALLOW' and sample ~ '0'", "sort": "sample", "order": "desc"}
    csv = pl.read_csv(io.BytesIO(file("csv", **wanted)))
    lines = [json.loads(line) for line in file("jsonl", **wanted).splitlines()]
    parquet = pl.read_parquet(io.BytesIO(file("parquet", **wanted)))

    found = [line["sample_id"] for line in lines]
    assert found == sorted(found, reverse=True)
    assert found == csv["sample_id"].to_list() == parquet["sample_id"].to_list()
    assert {line["model"] for line in lines} == {BAD}
    assert all(json.loads(line["reply"])["action"] == line["verdict"] == "ALLOW" for line in lines)
    assert pl.read_parquet(io.BytesIO(file("parquet", filter="latency > 1e9"))).columns == parquet.columns
    assert http.get(f"/runs/{world.verdicts}/items.file", params={"format": "exe"}).status_code == 422


def test_a_csv_of_hostile_names_and_replies_runs_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    texts = ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(1)"]
    line = {
        "suite": "command_guard",
        "model": "m",
        "replicate": 0,
        "label": "harmless",
        "dataset": "d",
        "command": "ls",
    }
    rows = [{**line, "sample_id": text, "command": f"{text} ls", "response": text} for text in texts]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, find_suite("command_guard"), [tmp_path / "rows.jsonl"])
    parts = items_file(RunIndexes(lake), run_id, WantedFile(format="csv"))
    csv = pl.read_csv(io.BytesIO(b"".join(parts)))

    for column, expected in (("sample_id", texts), ("reply", texts), ("input", [f"{text} ls" for text in texts])):
        assert sorted(csv[column].to_list()) == sorted(f"'{text}" for text in expected)


@pytest.mark.parametrize("style", ["csv", "jsonl", "parquet"])
def test_a_file_that_the_disk_has_no_room_for_is_one_sentence(style: str) -> None:
    rows = pl.DataFrame({"number": range(100_000)})
    with no_file_longer_than(1000), pytest.raises(LakeError, match=f"^the rows cannot be written as {style}: .*large"):
        file_of([rows], style, spreadsheet_safe=True)
