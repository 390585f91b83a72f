"""Runs whose process is gone: shown as lost, failed by the next run or maintenance, alive again if they are."""

import json
import threading
from pathlib import Path

import polars as pl

from evalake.contracts.tables import CALLS, RUNS
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.runs import Tally
from tests.integration.cli.command import evalake_here
from tests.integration.flows.lost import LONG_AGO, begin, states
from tests.integration.flows.workplace import Workplace


def test_the_next_run_marks_what_is_lost_and_nothing_else(work: Workplace) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    begin(work, "alive")
    done = work.run(work.dataset(1))
    assert states(work) == {"lost": "failed", "alive": "running", done["run_id"]: "completed"}
    row = work.rows(RUNS).row(by_predicate=pl.col("run_id") == "lost", named=True)
    assert row["ended_at"] == LONG_AGO
    assert row["message"].startswith("lost: no heartbeat after ")


def test_a_lost_run_has_paid_what_the_ledger_says(work: Workplace) -> None:
    done = work.run(work.dataset(3))
    told = work.rows(RUNS).row(0, named=True)
    gone = begin(work, done["run_id"], silent_since=LONG_AGO)  # as its row was before anything came back
    begin(work, "asked nothing", silent_since=LONG_AGO)
    runs.mark_lost(work.lake)
    rows = {row["run_id"]: row for row in work.rows(RUNS).iter_rows(named=True)}
    names = ("calls_made", "input_tokens", "output_tokens", "cost_usd")
    assert told["calls_made"] == 3
    assert {name: rows[gone.run_id][name] for name in names} == {name: told[name] for name in names}
    assert {name: rows["asked nothing"][name] for name in names} == dict.fromkeys(names, 0)


def test_what_a_lost_run_has_paid_is_unknown_where_the_ledger_is_gone(work: Workplace) -> None:
    done = work.run(work.dataset(3))
    begin(work, done["run_id"], silent_since=LONG_AGO)
    for file in work.lake.open(CALLS).file_uris():
        Path(file).unlink()
    runs.mark_lost(work.lake)
    (row,) = work.rows(RUNS).iter_rows(named=True)
    assert (row["state"], row["cost_usd"], row["input_tokens"]) == ("failed", None, None)


def test_they_are_listed_as_lost_before_anybody_marks_them(work: Workplace, tmp_path: Path) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    begin(work, "alive")
    listed = json.loads(evalake_here("runs", "--lake", work.lake.uri, "--format", "json", folder=tmp_path).stdout)
    assert {row["run_id"]: row["state"] for row in listed} == {"lost": "lost", "alive": "running"}


def test_a_run_tells_that_it_is_alive_and_how_far_it_is(work: Workplace) -> None:
    run = begin(work, "slow", silent_since=LONG_AGO)
    runs.mark_lost(work.lake)
    assert states(work) == {"slow": "failed"}
    asked = threading.Event()

    def tally() -> Tally:
        asked.set()
        return Tally(calls_made=7)

    with runs.alive(work.lake, run, tally, every_seconds=0.01):
        assert asked.wait(60)
    (row,) = work.rows(RUNS).iter_rows(named=True)
    assert (row["state"], row["calls_made"], row["ended_at"]) == ("running", 7, None)
    assert row["alive_at"] > LONG_AGO
