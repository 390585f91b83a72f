"""Commands that read a lake: runs, tables, queries, reports, exports."""

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from evalake.cli.runs import headline
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported

# `evalake sql` on an imported lake: as of now, as of then, and into a file.


def test_sql_reads_a_table_as_it_was(imported: Imported) -> None:
    at = ("--at", "command_guard_results=0")
    assert imported.query("select count(*) as n from command_guard_results", *at) == [{"n": 0}]


def test_an_empty_answer_is_said_to_be_one(imported: Imported) -> None:
    done = evalake_here("sql", "from samples where sample_id = 'none'", folder=imported.folder)
    assert (done.returncode, done.stderr) == (0, "no rows\n")


def test_sql_writes_parquet(imported: Imported) -> None:
    done = evalake_here(
        "sql", "select * from samples", "--format", "parquet", "--out", "samples.parquet", folder=imported.folder
    )
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(imported.folder / "samples.parquet").height == 40


# `evalake report`: a page for people, data for machines, and a verdict in words.


def test_a_report_is_a_page_and_data(imported: Imported) -> None:
    done = evalake_here("report", imported.run, "--out", "shown", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert "UNDECIDED" in done.stdout  # 0.75 [0.62-0.8504], as the interval still holds the target of 0.85
    place = imported.folder / "shown" / imported.run
    assert "openai/gpt-4o-mini" in (place / "report.html").read_text()
    assert json.loads((place / "report.json").read_text())


# `evalake export`: contracts and results as files.


def test_contracts_are_exported(tmp_path: Path) -> None:
    done = evalake_here("export", "contracts", "--out", "odcs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "odcs" / "command_guard_results.yaml").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A run of three right answers, one wrong and one missing."""
    lines = [recorded(n, action="BLOCK" if n % 2 == 0 else "ALLOW") for n in range(3)]
    lines += [recorded(3, command="=1+1"), recorded(4, action=None, error_kind="server")]
    folder = tmp_path_factory.mktemp("exported")
    (folder / "results.jsonl").write_text("\n".join(lines))
    done = evalake_here(
        "import", "results.jsonl", "--suite", "command_guard", "--max-missing", "0.5", "--json", folder=folder
    )
    return Imported(folder, json.loads(done.stdout))


def test_results_are_exported_as_tables_that_agree(run: Imported) -> None:
    for style in ("parquet", "csv"):
        done = evalake_here("export", "results", run.run, "--format", style, folder=run.folder)
        assert done.returncode == 0, done.stderr
    table = pl.read_parquet(run.folder / f"{run.run}.parquet")
    assert table["verdict"].to_list() == ["BLOCK", "ALLOW", "BLOCK", "BLOCK", "TIMEOUT_ERROR"]
    sheet = pl.read_csv(run.folder / f"{run.run}.csv")
    assert sheet["verdict"].to_list() == table["verdict"].to_list()
    assert sheet["command"][3] == "'=1+1"  # no formula of a spreadsheet


def test_results_are_exported_as_junit(run: Imported) -> None:
    done = evalake_here("export", "results", run.run, "--format", "junit", "--out", "j.xml", folder=run.folder)
    assert done.returncode == 0, done.stderr
    (suite,) = ElementTree.parse(run.folder / "j.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert counts["tests"] == "5"
    assert cases["mine s0 direct #0"] == []
    assert cases["mine s3 direct #0"] == ["failure"]
    assert len(cases["mine s4 direct #0"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("results",), "name the run"),
        (("results", "no-such-run"), "has no run no-such-run"),
        (("contracts", "some-run"), "contracts belong to no run"),
        (("pictures",), "pictures cannot be exported"),
    ],
)
def test_what_cannot_be_exported_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = evalake_here("export", *words, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


# `evalake explain`: the parts of a difference, and the rows behind one.


def test_the_parts_sum_up_to_the_difference_and_lead_to_their_rows(audited: Imported) -> None:
    sides = ("good", "poor", "--run", audited.run, "--metric", "target_detection_rate")
    done = evalake_here("explain", *sides, folder=audited.folder)
    assert done.returncode == 0, done.stderr
    assert "A-B      +0.7000" in done.stdout
    told = done.stdout.splitlines()
    commands = [shlex.split(line.removeprefix("rows: ")) for line in told if line.startswith("rows: ")]
    assert max(len(line) for line in told if not line.startswith("rows: ")) <= 80
    parts = json.loads(evalake_here("explain", *sides, "--format", "json", folder=audited.folder).stdout)
    assert sum(part["contribution"] for part in parts) == pytest.approx(0.7)
    assert [command[-1] for command in commands] == [part["part"] for part in parts if part["samples"]] != []
    for _, *words in commands:
        rows = json.loads(evalake_here(*words, "--format", "json", folder=audited.folder).stdout)
        assert {row["part"] for row in rows} == {words[-1]}


def test_a_part_that_no_difference_has_is_named(audited: Imported) -> None:
    done = evalake_here("explain", "good", "poor", "--rows", "luck", folder=audited.folder)
    assert done.returncode == 2
    assert "no part luck: choose" in done.stderr


# `evalake dataset show`: how sources are understood, and what stands in them twice.


def test_it_tells_form_mapping_counts_and_duplicates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("question;answer;topic\nWie groß?;1,8;body\nWho?;Me;body\n".encode("latin-1"))
    (tmp_path / "of").mkdir()
    (tmp_path / "of" / "a.jsonl").write_text('{"ask": "who?", "answer": "I"}\n\n[]\n')
    words = ("dataset", "show", "a.csv", "of/a.jsonl?input=ask")
    done = evalake_here(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in (
        "a.csv: read as columns separated by semicolons, Latin-1",
        "mapping: input = question, target = answer, category = topic",
        "mapping: target = answer, input = ask",
        "categories: body 2",
        "left out: not a JSON object 1",
        "duplicates: 0 within a source, 1 between sources",
    ):
        assert said in done.stdout
    told = json.loads(evalake_here(*words, "--json", folder=tmp_path).stdout)
    assert [each["samples"] for each in told["datasets"]] == [2, 1]
    assert len(told["duplicates"]) == 1


def test_a_table_without_a_plain_input_is_asked_for_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frage,antwort\nWer?,Ich\n")
    done = evalake_here("dataset", "show", "a.csv", folder=tmp_path)
    assert done.returncode == 2
    assert "(frage, antwort): write a.csv?input=COLUMN" in done.stderr
    starter = evalake_here("dataset", "show", "starter", folder=tmp_path)
    assert (starter.returncode, "name one with --suite" in starter.stderr) == (2, True)


# How rows are printed: long tables end somewhere, and values of every kind are written for machines.


def test_a_long_table_says_how_much_is_left_out(imported: Imported) -> None:
    done = evalake_here("sql", "select * from range(10003)", folder=imported.folder)
    assert done.stdout.splitlines()[-1].strip() == "9999"
    assert "3 more rows" in done.stderr
    assert (
        evalake_here("sql", "select * from range(10003)", "--format", "csv", folder=imported.folder).stdout.count("\n")
        == 10004
    )


def test_a_table_of_long_text_is_cut_and_says_so(imported: Imported) -> None:
    done = evalake_here("sql", "select repeat('x y ', 100000) as text, i from range(50) t(i)", folder=imported.folder)
    assert len(done.stdout) < 2_000_000
    assert "(300000 more characters)" in done.stdout
    assert "48 more rows" in done.stderr


def test_values_of_every_kind_are_written_for_machines(imported: Imported) -> None:
    values = {
        "'a'::blob": ("61", '"61"'),
        "[1, 2]::int[2]": ('"[1, 2]"', "[1, 2]"),
        "['a'::blob]": ('"[""61""]"', '["61"]'),
        "{'a': [0.5::double]}": ('"{""a"": [0.5]}"', '{"a": [0.5]}'),
        "null::int[]": ("", "null"),
    }
    query = "select " + ", ".join(f"{expression} as c{n}" for n, expression in enumerate(values))
    as_csv, as_json = (
        evalake_here("sql", query, "--format", form, folder=imported.folder).stdout for form in ("csv", "json")
    )
    assert as_csv == "c0,c1,c2,c3,c4\n" + ",".join(each for each, _ in values.values()) + "\n"
    assert as_json == "[{" + ", ".join(f'"c{n}": {each}' for n, (_, each) in enumerate(values.values())) + "}]\n"


# `evalake watch`: a run under way is shown until it ends, by model.

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
ROW = {
    **{"suite": "toys", "run_id": "r", "state": "running", "items": 400, "items_done": 100, "cost_usd": 0.5},
    **{"started_at": BEGAN, "ended_at": None, "calls_made": 100, "calls_from_ledger": 0},
}


def test_rate_and_time_left_follow_from_the_items_done() -> None:
    later = BEGAN + timedelta(seconds=50)
    assert headline(ROW, later) == "toys r running: 100 of 400 items, 2.0 a second, 0:02:30 left, cost 0.50 USD"
    ended = {**ROW, "state": "completed", "items_done": 400, "ended_at": later, "cost_usd": None}
    assert (
        headline(ended, later + timedelta(days=1)) == "toys r completed: 400 of 400 items, 8.0 a second, cost unknown"
    )
    uncounted = headline({**ROW, "calls_made": 0, "cost_usd": 0.0}, later)
    assert uncounted == "toys r running: 100 of 400 items, 2.0 a second, 0:02:30 left"
    assert headline({**ROW, "items_done": None}, later) == (
        "toys r running: an unknown number of 400 items, cost 0.50 USD"
    )


def test_a_lake_without_a_run_is_told_so(tmp_path: Path) -> None:
    done = evalake_here("watch", folder=tmp_path)
    assert (done.returncode, "has no run yet" in done.stderr) == (2, True)
