"""Runs by batch jobs: they wait, collect, and end as runs by single calls do; nothing is lost or paid twice."""

from typing import Any

import polars as pl

from evalake.contracts.tables import BATCH_JOBS, BATCH_REQUESTS, CALLS, METRIC_SNAPSHOTS
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.flows.workplace import Workplace


def values(work: Workplace, run_id: str) -> list[Any]:
    """What a run measured, all but how long it took."""
    rows = work.rows(METRIC_SNAPSHOTS).filter(pl.col("run_id") == run_id, ~pl.col("metric").str.contains("latency"))
    return rows.select("metric", "slice", "slice_value", "value", "n").sort(pl.all()).rows()


def test_a_run_waits_collects_and_measures_what_one_by_calls_does(work: Workplace) -> None:
    data, jobs = work.dataset(6), work.server.batches
    jobs.held = True
    first = work.run(data, batch=True)
    assert (first["flow_state"], first["state"], first["calls_made"]) == ("Waiting", "incomplete", 0)
    assert "6 items for 1 batch jobs with 6 requests until 2096-10-02" in first["message"]
    again = work.run(data, batch=True)
    assert (again["run_id"], again["flow_state"], len(jobs.jobs)) == (first["run_id"], "Waiting", 1)
    jobs.held, jobs.expires, jobs.fails = False, {"# 00001"}, {"# 00002"}
    third = work.run(data, batch=True)
    assert (third["flow_state"], third["calls_made"]) == ("Waiting", 5)
    assert work.asked() == 1, "what failed is called at once"
    jobs.expires = set()
    last = work.run(data, batch=True)
    assert (last["run_id"], last["flow_state"], last["state"]) == (first["run_id"], "Completed", "completed")
    assert (last["calls_made"], work.rows(CALLS).height) == (6, 6)
    assert sorted(jobs.paid.values()) == [1] * 5
    assert (jobs.files, work.rows(BATCH_REQUESTS)["request"].drop_nulls().to_list()) == ({}, [])
    assert set(work.rows(BATCH_JOBS).sort("revision").group_by("job_id").last()["state"]) == {"closed"}
    single = work.run(data, first_replicate=1)
    assert (single["calls_made"], values(work, single["run_id"])) == (6, values(work, last["run_id"]))
    assert work.rows(RESULTS).height == 12
