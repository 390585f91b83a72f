"""Attempts of runs: the first start stays, each attempt has asked and paid its own part, and none stays open."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import RUN_ATTEMPTS, RUNS
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import append
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.attempts import PATIENCE_SECONDS, is_overtaken, with_attempts
from evalake.tasks.runtime.progress import background_thread
from evalake.tasks.runtime.resources import LEASE_SECONDS, Lease
from evalake.tasks.runtime.runs import Run, Tally
from tests.e2e.processes import wait_until
from tests.integration.storage.rows import call

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
    assert one["message"] == "its process has died"
    assert one["ended_at"] >= one["started_at"]
    assert (two["state"], two["calls_made"], two["cost_usd"]) == ("running", 0, 0.0)


def test_an_older_attempt_that_lives_leaves_the_run_to_the_newer_one(lake: Lake) -> None:
    first = runs.begin(lake, started(), 1, None)
    answered(lake, 1, 2)
    assert not runs.yield_to_newer_attempt(lake, first)

    def leave(over: threading.Event) -> None:
        while not is_overtaken(lake, "r", LONG_AGO):
            over.wait(0.01)
        assert runs.yield_to_newer_attempt(lake, first)

    now = datetime.now(UTC)
    with background_thread(leave, "older"):
        second = runs.begin(lake, started(now), 2, None, patience_seconds=60)
    assert datetime.now(UTC) - now < timedelta(seconds=30)
    one, two = attempts(lake)
    assert (one["state"], one["calls_made"], one["message"]) == ("failed", 2, "another process has continued the run")
    assert (two["state"], two["calls_made"]) == ("running", 0)
    (row,) = lake.frame(RUNS).collect().to_dicts()
    assert (row["state"], row["message"]) == ("running", None)
    assert not runs.yield_to_newer_attempt(lake, second)


def test_the_right_to_ask_ends_for_a_process_that_stood_still_while_a_newer_one_began(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [time()]
    monkeypatch.setattr("evalake.tasks.runtime.attempts.time.time", lambda: clock[0])
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


def test_an_older_attempt_gives_no_sign_of_life_for_its_run_any_more(lake: Lake) -> None:
    first = runs.begin(lake, started(), 1, None)
    second = runs.begin(lake, started(datetime.now(UTC)), 2, None, patience_seconds=0)
    runs.save(lake, second.ended("completed"))
    with runs.alive(lake, first, Tally, every_seconds=0.001):
        wait_until(lambda: "alive" not in {thread.name for thread in threading.enumerate()}, "the last sign", 30)
    (row,) = lake.frame(RUNS).collect().to_dicts()
    assert row["state"] == "completed"


def test_an_attempt_of_a_lost_run_is_ended_with_it(lake: Lake) -> None:
    runs.begin(lake, started(), 1, None)
    answered(lake, 1)
    silent = lake.frame(RUNS).collect().with_columns(alive_at=pl.lit(LONG_AGO))
    land(lake, RUNS, silent)
    runs.mark_lost(lake)
    (one,) = attempts(lake)
    assert (one["state"], one["ended_at"], one["calls_made"]) == ("failed", LONG_AGO, 1)


def test_what_is_no_flow_run_has_no_attempts(lake: Lake) -> None:
    runs.save(lake, replace(started(), origin="import").ended("completed"))
    (row,) = with_attempts(lake, lake.frame(RUNS)).collect().to_dicts()
    assert (row["attempts"], row["started_by"]) == (None, None)
