"""A run while it runs: its row, its attempts and their progress."""

import asyncio
import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import time
from typing import Any
from uuid import uuid4

import httpx
import polars as pl
import pytest

from evalake.contracts.tables import RUN_ATTEMPTS, RUNS
from evalake.core.errors import LakeError, UsageError
from evalake.storage import landing
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import append
from evalake.tasks.runtime import progress, runs
from evalake.tasks.runtime.progress import advance, background_thread, ended, heartbeat_artifact, shown
from evalake.tasks.runtime.resources import LEASE_SECONDS, Lease
from evalake.tasks.runtime.runs import (
    PATIENCE_SECONDS,
    Run,
    Tally,
    cost_of,
    is_overtaken,
    labels_of,
    mark_lost,
    of_suite,
    run_row,
    tagged,
    with_attempts,
    with_labels,
    with_lost,
    with_state,
)
from tests.e2e.processes import wait_until
from tests.integration.storage.rows import call

# Rows of runs: what is unknown stays unknown, and a run whose process is gone is told and marked.

NOW = datetime.now(UTC)


def test_tallies_add_up_and_an_unknown_sum_stays_unknown() -> None:
    whole = Tally(calls_made=1, cost_usd=0.5, input_tokens=7) + Tally(calls_made=2, cost_usd=None, input_tokens=1)
    assert (whole.calls_made, whole.cost_usd, whole.input_tokens) == (3, None, 8)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"cost_usd": 0.12345}, "0.123 USD"),
        ({"cost_usd": None}, "unknown"),
        (
            {"cost_usd": None, "cost_usd_known": 2.0, "calls_unpriced": 10, "calls_bought": 1200},
            "at least 2.00 USD, 10 of 1,200 calls unpriced",
        ),
    ],
)
def test_a_cost_is_told_as_far_as_it_is_known(row: dict[str, Any], told: str) -> None:
    assert cost_of(row) == told


def test_a_run_without_a_sign_of_life_is_lost_and_then_failed(lake: Lake) -> None:
    for name in ("silent", "alive"):
        runs.save(lake, Run(name, "quiz", "run", {}, {}, ["a/model"], [], 1, 1, NOW - timedelta(hours=2)))
    rows = lake.frame(RUNS).filter(pl.col("run_id") == "silent").collect()
    land(lake, RUNS, rows.with_columns(alive_at=pl.lit(NOW - timedelta(hours=1))))

    def states() -> dict[str, str]:
        return dict(with_lost(lake.frame(RUNS)).select("run_id", "state").collect().iter_rows())

    assert states() == {"silent": "lost", "alive": "running"}
    assert mark_lost(lake) == ["silent"]
    assert states() == {"silent": "failed", "alive": "running"}
    assert mark_lost(lake) == []


def test_a_clock_that_went_back_ends_a_run_when_it_began(lake: Lake) -> None:
    ahead = NOW + timedelta(hours=1)
    ends, dies = replace(a_run("ends"), started_at=ahead), replace(a_run("dies"), started_at=ahead)
    runs.save(lake, runs.begin(lake, ends, 1, None).ended("completed"))
    runs.begin(lake, dies, 1, None)
    rows = lake.frame(RUNS).filter(run_id="dies").collect()
    land(lake, RUNS, rows.with_columns(alive_at=pl.lit(NOW - timedelta(hours=1))))
    assert mark_lost(lake) == ["dies"]
    told = {name: (run_row(lake, name)["state"], run_row(lake, name)["ended_at"]) for name in ("ends", "dies")}
    assert told == {"ends": ("completed", ahead), "dies": ("failed", ahead)}
    assert lake.frame(RUN_ATTEMPTS).select(pl.col("ended_at").unique()).collect().to_series().to_list() == [ahead]


def test_a_run_that_can_be_resumed_is_suspended_until_its_time_is_over(lake: Lake) -> None:
    messages = {
        "open": runs.suspended_until(None),
        "in time": runs.suspended_until(datetime.now(UTC) + timedelta(hours=1)),
        "too late": runs.suspended_until(datetime.now(UTC) - timedelta(seconds=2)),
        "ended": "suspended; without a deployment, this command continues it: evalake run quiz",
        "broken": "the judge is gone",
    }
    for name, message in messages.items():
        runs.save(lake, replace(a_run(name), state="failed", message=message))
    states = dict(with_state(lake, lake.frame(RUNS)).select("run_id", "state").collect().iter_rows())
    expected = {"open": "suspended", "in time": "suspended", "too late": "failed", "ended": "failed"}
    assert states == {**expected, "broken": "failed"}
    runs.save(lake, a_run("open"))  # it was resumed
    assert run_row(lake, "open")["state"] == "running"


def test_runs_with_a_tag_are_those_that_have_it_whole() -> None:
    given = [labels_of(tags, note) for tags, note in ((["night", "a b"], "why"), (["nightly"], None), ([], None))]
    rows = pl.LazyFrame({"parameters": [*map(json.dumps, given), "{}"]})
    assert tagged(with_labels(rows), "night").select("tags", "note").collect().rows() == [(["night", "a b"], "why")]
    assert tagged(with_labels(rows), None).collect().height == 4


def test_runs_of_a_suite_are_chosen_and_a_misspelt_one_is_answered() -> None:
    rows = pl.LazyFrame({"run_id": ["a", "b"], "suite": ["toys", "command_guard"]})
    assert of_suite(rows, "toys").collect()["run_id"].to_list() == ["a"]
    assert of_suite(rows, None).collect().height == 2
    with pytest.raises(UsageError, match="suite comand_guard; did you mean command_guard"):
        of_suite(rows, "comand_guard")
    with pytest.raises(UsageError, match="suite xyz: it has command_guard, toys"):
        of_suite(rows, "xyz")


def a_run(name: str) -> Run:
    return Run(name, "quiz", "run", {}, {}, ["a/model"], [], 1, 1, NOW)


def test_an_interrupt_marks_what_this_process_has_begun_and_not_ended_and_what_fails_from_then_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_running", {})  # without what other tests have left running
    monkeypatch.setattr(runs, "interrupted", told := threading.Event())
    for name in ("ended", "cut"):
        runs.save(lake, a_run(name))
    runs.save(lake, a_run("ended").ended("completed"))
    runs.mark_interrupted()
    told.set()
    runs.save(lake, a_run("failed").ended("failed", message="a call was cancelled"))
    runs.save(lake, a_run("well").ended("completed"))
    runs.mark_interrupted()  # there is nothing left to mark
    rows = dict(lake.frame(RUNS).select("run_id", "message").collect().iter_rows())
    why = "interrupted; a rerun asks only for what is missing"
    assert rows == {"ended": None, "well": None, "cut": why, "failed": why}
    assert lake.frame(RUNS).filter(state="running").collect().is_empty()


def test_a_running_row_counts_the_items_that_are_done_though_no_row_has_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: None)  # no server here
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", lambda *_: None)
    lake, run = Lake(str(tmp_path / "lake")), a_run("busy")
    with progress.shown("busy", "quiz busy", 500):
        progress.advance("busy", "m #1", 147)
        runs.save(lake, run)
        assert lake.frame(RUNS).collect()["items_done"].item() == 147
    runs.save(lake, run.ended("completed", tally=Tally(items_done=500)))
    assert lake.frame(RUNS).collect()["items_done"].item() == 500


def test_a_sign_of_life_that_cannot_be_written_is_said_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake, tried = Lake(str(tmp_path / "lake")), Event()

    def tally() -> Tally:
        if tried.is_set():
            again.set()
        tried.set()
        raise LakeError("the disk is full")

    again = Event()
    with caplog.at_level("WARNING", "evalake.runs"), runs.alive(lake, a_run("busy"), tally, 0.001):
        assert again.wait(600)
    assert "run busy could not write its heartbeat: the disk is full" in caplog.messages


def test_the_cost_of_a_running_run_is_unknown_until_its_first_calls_are_counted(tmp_path: Path) -> None:
    lake, run = Lake(str(tmp_path)), Run("one", "toys", "run", {}, {}, ["m"], [], 5, 5, NOW)
    known = []
    tallies = (Tally(), Tally(calls_from_ledger=3), Tally(calls_made=2, cost_usd=0.5))
    for each in (*(replace(run, tally=tally) for tally in tallies), run.ended("completed")):
        runs.save(lake, each)
        known.append(run_row(lake, "one")["cost_usd"])
    assert known == [None, None, 0.5, 0.0]


# Attempts of runs: the first start stays, each attempt has asked and paid its own part, and none stays open.

LONG_AGO = datetime.now(UTC) - timedelta(hours=2)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def started(at: datetime = LONG_AGO) -> Run:
    return Run("r", "command_guard", "run", {}, {}, ["m"], [], 1, 1, at)


def answered(lake: Lake, *numbers: int) -> None:
    append(lake, [call(number, run_id="r") | {"cost_usd": 0.5} for number in numbers])


def attempts(lake: Lake) -> list[dict[str, Any]]:
    return lake.frame(RUN_ATTEMPTS).sort("attempt").collect().to_dicts()


def test_a_retry_leaves_the_first_start_and_counts_what_it_asked_itself(lake: Lake) -> None:
    first = runs.begin(lake, started(), 1, "schedule")
    answered(lake, 1, 2)
    runs.save(lake, first.ended("incomplete", tally=Tally(calls_made=2, calls_failed=1, cost_usd=1.0), message="why"))
    again = datetime.now(UTC)
    second = runs.begin(lake, started(again), 2, "Prefect UI")
    assert second.started_at == LONG_AGO
    answered(lake, 3)
    runs.save(lake, second.ended("completed", tally=Tally(calls_made=3, cost_usd=1.5)))
    one, two = attempts(lake)
    assert (one["state"], one["started_by"], one["calls_made"], one["cost_usd"]) == ("incomplete", "schedule", 2, 1.0)
    assert (two["state"], two["started_by"], two["calls_made"], two["cost_usd"]) == ("completed", "Prefect UI", 1, 0.5)
    assert (one["calls_failed"], one["message"], two["calls_failed"], two["message"]) == (1, "why", 0, None)
    assert (one["started_at"], two["started_at"]) == (LONG_AGO, again)
    (row,) = with_attempts(lake, lake.frame(RUNS)).collect().to_dicts()
    assert (row["started_at"], row["attempts"], row["started_by"]) == (LONG_AGO, 2, "schedule")
    assert (row["calls_made"], row["cost_usd"]) == (3, 1.5)


def test_an_attempt_that_was_killed_is_ended_by_the_next(lake: Lake) -> None:
    runs.begin(lake, started(), 1, None)
    answered(lake, 1, 2, 3)
    runs.begin(lake, started(datetime.now(UTC)), 2, None, patience_seconds=0)
    one, two = attempts(lake)
    assert (one["state"], one["calls_made"], one["cost_usd"]) == ("failed", 3, 1.5)
    assert one["message"] == "a later attempt has continued the run"
    assert one["ended_at"] >= one["started_at"]
    assert (two["state"], two["calls_made"], two["cost_usd"], runs.any_running()) == ("running", 0, 0.0, True)


def test_an_older_attempt_that_lives_leaves_the_run_to_the_newer_one(lake: Lake) -> None:
    first = runs.begin(lake, started(), 1, None)
    answered(lake, 1, 2)
    assert not runs.yield_to_newer_attempt(lake, first)

    def leave(over: threading.Event) -> None:
        while not is_overtaken(lake, "r", LONG_AGO):
            over.wait(0.01)
        assert runs.yield_to_newer_attempt(lake, first)

    with background_thread(leave, "older"):  # for which no test would wait so long
        second = runs.begin(lake, started(datetime.now(UTC)), 2, None, patience_seconds=100_000)
    one, two = attempts(lake)
    assert (one["state"], one["calls_made"], one["message"]) == ("failed", 2, "a later attempt has continued the run")
    assert (two["state"], two["calls_made"]) == ("running", 0)
    (row,) = lake.frame(RUNS).collect().to_dicts()
    assert (row["state"], row["message"]) == ("running", None)
    assert not runs.yield_to_newer_attempt(lake, second)


def test_the_right_to_ask_ends_for_a_process_that_stood_still_while_a_newer_one_began(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [time()]
    monkeypatch.setattr("evalake.tasks.runtime.runs.time.time", lambda: clock[0])
    runs.begin(lake, started(), 1, None)
    older = Lease(lake, "r", LONG_AGO)
    assert asyncio.run(older.holds())
    now = datetime.now(UTC)
    runs.begin(lake, started(now), 2, None, patience_seconds=0)
    assert asyncio.run(older.holds())  # for the seconds that the newer attempt waits
    assert LEASE_SECONDS < PATIENCE_SECONDS
    clock[0] += LEASE_SECONDS
    assert not asyncio.run(older.holds())
    assert asyncio.run(Lease(lake, "r", now).holds())


def test_calls_that_begin_at_once_look_once_for_a_newer_attempt(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.begin(lake, started(), 1, None)
    looks: list[str] = []

    def look(lake: Lake, run_id: str, started_at: datetime) -> bool:
        looks.append(run_id)
        return is_overtaken(lake, run_id, started_at)

    monkeypatch.setattr("evalake.tasks.runtime.resources.is_overtaken", look)
    lease = Lease(lake, "r", LONG_AGO)

    async def begin(calls: int) -> list[bool]:
        return await asyncio.gather(*(lease.holds() for _ in range(calls)))

    assert asyncio.run(begin(20)) == [True] * 20
    assert looks == ["r"]


def test_where_attempts_cannot_be_read_none_gives_way(lake: Lake) -> None:
    first = runs.begin(lake, started(), 1, None)
    for file in lake.open(RUN_ATTEMPTS).file_uris():
        Path(file).unlink()
    assert not runs.yield_to_newer_attempt(lake, first)


def test_an_older_attempt_that_stood_still_amid_a_heartbeat_leaves_the_row_to_the_newer_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, merge = runs.begin(lake, started(), 1, None), landing._merge

    def stand_still(*of_first: Any) -> Any:
        monkeypatch.setattr(landing, "_merge", merge)
        second = runs.begin(lake, started(datetime.now(UTC)), 2, None, patience_seconds=0)
        runs.save(lake, second.ended("completed"))
        return merge(*of_first)

    monkeypatch.setattr(landing, "_merge", stand_still)
    with runs.alive(lake, first, Tally, every_seconds=0.001):
        wait_until(lambda: "alive" not in {thread.name for thread in threading.enumerate()}, "the last sign")
    assert lake.frame(RUNS).collect()["state"].to_list() == ["completed"]
    assert [each["state"] for each in attempts(lake)] == ["failed", "completed"]


def test_an_attempt_of_a_lost_run_is_ended_with_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.begin(lake, started(), 1, None)
    answered(lake, 1)
    silent = lake.frame(RUNS).collect().with_columns(alive_at=pl.lit(LONG_AGO))
    land(lake, RUNS, silent)
    with monkeypatch.context() as patched:  # it wakes, and ends, while the ledger is read
        counted, woken = runs.counted_by_ledger, silent.with_columns(state=pl.lit("completed"))
        patched.setattr(runs, "counted_by_ledger", lambda *of: (land(lake, RUNS, woken), counted(*of))[1])
        assert (runs.mark_lost(lake), lake.frame(RUNS).collect()["state"].item()) == ([], "completed")
    land(lake, RUNS, silent)
    assert runs.mark_lost(lake) == ["r"]
    (one,) = attempts(lake)
    assert (one["state"], one["ended_at"], one["calls_made"]) == ("failed", LONG_AGO, 1)


def test_a_retry_of_a_flow_run_whose_run_others_continued_is_the_newest_attempt(lake: Lake) -> None:
    for number in (1, 2, 3, 2):  # the last by Prefect's count of the first flow run
        run = runs.begin(lake, started(datetime.now(UTC)), number, None)
        runs.save(lake, run.ended("incomplete"))
    assert [each["attempt"] for each in attempts(lake)] == [1, 2, 3, 4]


def test_what_is_no_flow_run_has_no_attempts(lake: Lake) -> None:
    runs.save(lake, replace(started(), origin="import").ended("completed"))
    (row,) = with_attempts(lake, lake.frame(RUNS)).collect().to_dicts()
    assert (row["attempts"], row["started_by"]) == (None, None)


# Progress of runs: its key, what is counted for which run, and a sign of life past a server that is away.


def test_what_ends_is_counted_for_the_run_that_is_shown_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: uuid4())  # no server here
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", lambda *_: None)
    advance("mine", by=4)  # before anybody shows it
    with shown("mine", "guard mine", 9):
        advance("mine", "first", 2)
        advance("nobody's", "first", 5)
        ended("mine", "second", 3)
        ended("mine", "second", 3)  # the same part, as another process says it again
        ended("nobody's", "second", 3)
    assert capsys.readouterr().err.splitlines()[-1] == "guard mine: 5 of 9"


def test_it_shows_progress_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []
    thrice = threading.Event()
    away = [True]

    def update(_: object, progress: float) -> None:
        if away.pop() if away else False:
            raise httpx.ConnectError("away")
        shown.append(progress)
        if len(shown) == 3:
            thrice.set()

    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: uuid4())
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", update)
    with heartbeat_artifact("key", "title", lambda: 50.0, beat_seconds=0.002, look_seconds=0.001):
        assert thrice.wait(600)
    count = len(shown)
    assert shown == [50.0] * count
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
