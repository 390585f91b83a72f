"""Rows of runs: what is unknown stays unknown, and a run whose process is gone is told and marked."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import RUNS
from evalake.core.errors import LakeError, UsageError
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.runtime import progress, runs
from evalake.tasks.runtime.attempts import Attempt, OvertakenError, require_newest
from evalake.tasks.runtime.runs import (
    Run,
    Tally,
    cost_of,
    labels_of,
    mark_lost,
    of_suite,
    run_row,
    tagged,
    with_labels,
    with_lost,
)

NOW = datetime.now(UTC)


def test_tallies_add_up_and_an_unknown_sum_stays_unknown() -> None:
    whole = Tally(calls_made=1, cost_usd=0.5, input_tokens=7) + Tally(calls_made=2, cost_usd=None, input_tokens=1)
    assert (whole.calls_made, whole.cost_usd, whole.input_tokens) == (3, None, 8)


def test_a_run_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no run nothing: `evalake runs` lists the runs"):
        run_row(Lake(str(tmp_path)), "nothing")


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


def test_a_run_without_a_sign_of_life_is_lost_and_then_failed(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
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


def test_an_attempt_that_a_newer_one_overtook_is_refused(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        began = NOW + timedelta(seconds=number)
        runs.save(lake, replace(a_run("twice"), attempt=Attempt(number, None, began)))
    require_newest(lake, "twice", NOW + timedelta(seconds=2))
    with pytest.raises(OvertakenError, match="run twice"):
        require_newest(lake, "twice", NOW + timedelta(seconds=1))


def a_run(name: str) -> Run:
    return Run(name, "quiz", "run", {}, {}, ["a/model"], [], 1, 1, NOW)


def test_what_this_process_has_begun_and_not_ended_is_marked_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_running", {})  # without what other tests have left running
    lake = Lake(str(tmp_path / "lake"))
    for name in ("ended", "cut"):
        runs.save(lake, a_run(name))
    runs.save(lake, a_run("ended").ended("completed"))
    runs.mark_interrupted()
    rows = dict(lake.frame(RUNS).select("run_id", "message").collect().iter_rows())
    assert rows == {"ended": None, "cut": "interrupted; a rerun asks only for what is missing"}
    runs.mark_interrupted()  # there is nothing left to mark
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
        assert again.wait(60)
    assert "run busy could not write its heartbeat: the disk is full" in caplog.messages


def test_a_run_that_fails_once_the_process_was_interrupted_failed_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_running", {})
    monkeypatch.setattr(runs, "interrupted", told := threading.Event())
    told.set()
    lake = Lake(str(tmp_path / "lake"))
    runs.save(lake, a_run("cut").ended("failed", message="a call was cancelled"))
    runs.save(lake, a_run("ended").ended("completed"))
    rows = dict(lake.frame(RUNS).select("run_id", "message").collect().iter_rows())
    assert rows == {"ended": None, "cut": "interrupted; a rerun asks only for what is missing"}


def test_the_cost_of_a_running_run_is_unknown_until_its_first_calls_are_counted(tmp_path: Path) -> None:
    lake, run = Lake(str(tmp_path)), Run("one", "toys", "run", {}, {}, ["m"], [], 5, 5, NOW)
    known = []
    for each in (run, replace(run, tally=Tally(calls_made=2, cost_usd=0.5)), run.ended("completed")):
        runs.save(lake, each)
        known.append(run_row(lake, "one")["cost_usd"])
    assert known == [None, 0.5, 0.0]
