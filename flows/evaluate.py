"""Evaluate: the way of a row, from a dataset to a metric snapshot, for any suite."""

import os
from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field

from contracts.errors import EvalakeError
from flows.shards import ask_in_shards, require_shards
from providers.telemetry import current_trace
from tasks import progress, runs, usage
from tasks.artifacts import leave_artifacts
from tasks.collect import Collector
from tasks.context import RunContext
from tasks.logs import observed
from tasks.measure import measure
from tasks.preflight import Order, Plan, check
from tasks.resources import end_attempt, spared_collector
from tasks.runner import task_runner
from tasks.runs import Run
from tasks.walk import walk

DEFAULT_LAKE = "./lake"


measure_task = task(name="measure", retries=1, cache_policy=NO_CACHE, persist_result=False)(measure)


class IncompleteRunError(EvalakeError):
    """A run ended with items that no model answered; a retry of it asks only for those."""


@flow(
    name="evaluate",
    flow_run_name="evaluate-{suite}",
    persist_result=False,
    task_runner=task_runner(),
)
def evaluate(
    suite: str = "command_guard",
    models: list[str] | None = None,
    judges: list[str] | None = None,
    datasets: list[str] | None = None,
    limit: Annotated[int | None, Field(ge=1)] = None,
    replicates: Annotated[int, Field(ge=1)] = 1,
    prompt_types: list[str] | None = None,
    shards: Annotated[int, Field(ge=1, le=64)] = 1,
    lake: str | None = None,
    configuration_file: str | None = None,
) -> str:
    """Run a suite: call what the ledger does not know, land every row once, and snapshot the metrics.

    Returns the run's id. Raises IncompleteRunError, after everything that could be done has been, where calls were
    given up on.

    Args:
        suite: The suite to run.
        models: Subject models; none means the suite's baselines.
        judges: Judge models; none means the suite's baselines.
        datasets: Sources; none means the starter data.
        limit: Only the first samples of each dataset.
        replicates: How often each request is asked.
        prompt_types: Prompt types; none means the first.
        shards: How many flow runs, on as many workers as take them, ask the items; this one asks its share, and does
            everything else.
        lake: The lake; none means EVALAKE_LAKE or ./lake.
        configuration_file: In place of ./evalake.toml.
    """
    where = lake or os.environ.get("EVALAKE_LAKE") or DEFAULT_LAKE
    order = Order(suite, where, models, judges, datasets, limit, replicates, prompt_types, configuration_file)
    flow_run_id = str(flow_run.id)
    with observed(f"evaluate {suite}", flow_run_id, run_id_of(flow_run_id), suite):
        require_shards(shards)
        return _evaluate(check(order), shards)


def run_id_of(flow_run_id: str) -> str:
    """A run is named by the random end of its flow run's id, so that a retry of the flow run is the same run."""
    return flow_run_id.replace("-", "")[-12:]


@spared_collector()
def _evaluate(plan: Plan, shards: int) -> str:
    flow_run_id, attempt = str(flow_run.id), flow_run.run_count or 1
    run_id, trace = run_id_of(flow_run_id), current_trace()
    context = RunContext(run_id, plan.suite.name, plan.lake, plan.configuration, attempt, trace)
    run = Run(
        run_id=context.run_id,
        suite=plan.suite.name,
        origin="run",
        parameters=plan.parameters,
        dataset_versions=runs.versions_of(plan.datasets),
        models=plan.models,
        judges=plan.judges,
        samples=plan.samples,
        items=plan.items,
        started_at=datetime.now(UTC),
        flow_run_id=flow_run_id,
    )
    runs.save(plan.lake, run)
    runs.mark_lost(plan.lake)
    publisher: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=1)
    collector = Collector(context, publisher)
    try:
        with publisher, runs.alive(plan.lake, run, lambda: collector.tally):
            snapshot_id = _carry_out(context, plan, collector, shards)
    except BaseException as error:
        runs.save(plan.lake, run.ended("failed", tally=collector.tally, message=_message(error)))
        raise
    finally:
        end_attempt(context)
    message = collector.message
    ended = run.ended(collector.state, tally=collector.tally, snapshot_id=snapshot_id, message=message)
    runs.save(plan.lake, ended)
    leave_artifacts(context, ended)
    if ended.state != "completed":
        raise IncompleteRunError(
            f"run {ended.run_id} is incomplete: {message}; run it again to ask only for what is missing"
        )
    return ended.run_id


def _carry_out(context: RunContext, plan: Plan, collector: Collector, shards: int) -> str | None:
    """From samples to metrics; returns the snapshot's id, None where nothing landed that could be measured."""
    collector.extract(plan.datasets)
    if shards > 1:
        ask_in_shards(context, plan, shards)
    with progress.shown(context.run_id, f"{plan.suite.name} {context.run_id}", plan.items):
        walk(context, plan, collector)
    collector.finish()
    collector.derive()
    usage.save(plan.lake, context.run_id, collector.calls.pairs)
    return measure_task(context, collector.warnings) if collector.has_rows else None


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, EvalakeError) else f"{type(error).__name__}: {str(error)[:300]}"
