"""The flow collect: continues runs that wait for batch jobs, once a job has ended."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from evalake.contracts.tables import BATCH_JOBS, RUNS
from evalake.core.errors import EvalakeError
from evalake.flows.evaluate import evaluate
from evalake.request import OPTIONS, RunRequest
from evalake.storage.batch_jobs import jobs, waiting_runs
from evalake.tasks.jobs import Jobs, have_news
from evalake.tasks.preflight import NOT_KEPT
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, flow_inputs


class CollectError(EvalakeError):
    """Some waiting runs could not be continued; the others were."""


@flow(name="collect", persist_result=False)
def collect(lake: LakeUri = None, configuration_file: ConfigurationFile = None) -> State[Any]:
    """Continue each run with an ended batch job: land its replies, and make the calls that follow.

    Raises CollectError, after the other runs, where one fails.

    Args:
        configuration_file: Instead of ./evalake.toml; the runs are continued with it.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    if not where.exists(BATCH_JOBS):
        return Completed(message="the lake has no batch jobs")
    unfinished = pl.col("state").is_in(["cancelling", "collected"])  # replies are paid, or files lie at the provider
    for job in jobs(where, unfinished):  # their runs do not go on
        context = RunContext(job.run_id, "", where, configuration, batched=frozenset({job.model}))
        Jobs(context, frozenset()).collect()
    waiting = where.frame(RUNS).filter(pl.col("run_id").is_in(waiting_runs(where)["run_id"].to_list())).collect()
    continued, failures = 0, []
    for run in waiting.sort("started_at").iter_rows(named=True):
        if not have_news(RunContext(run["run_id"], run["suite"], where, configuration), run["run_id"]):
            continue
        file = Path(configuration_file) if configuration_file else None
        kept = {name: given for name, given in json.loads(run["parameters"]).items() if given not in (None, [], "")}
        asked = {name: kept[name] for name in OPTIONS.keys() & kept.keys() - {*NOT_KEPT}}
        request = RunRequest(run["suite"], lake=where.uri, configuration_file=file, **asked)
        state = evaluate(**request.parameters, return_state=True)
        continued += 1
        if not state.is_completed():
            failures.append(f"{run['run_id']}: {state.message}")
    if failures:
        raise CollectError(f"{len(failures)} waiting runs could not be continued: {'; '.join(failures)}")
    return Completed(message=f"{waiting.height} runs wait for batch jobs, {continued} of them were continued")
