"""`evalake sql` on an imported lake: as of now, as of then, and into a file."""

import polars as pl

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_sql_answers_questions_about_verdicts(imported: Imported) -> None:
    found = imported.query("select verdict, count(*) as n from command_guard_results group by all order by all")
    assert found == [{"verdict": "ALLOW", "n": 30}, {"verdict": "BLOCK", "n": 10}]


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
