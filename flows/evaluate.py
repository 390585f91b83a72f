"""Evaluate: the way of a row, from a dataset to a metric snapshot, for any suite."""

import os
from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from pydantic import Field

from contracts.errors import EvalakeError
from tasks import progress, runs
from tasks.artifacts import leave_artifacts
from tasks.collect import Collector
from tasks.context import RunContext
from tasks.logs import redact_logs
from tasks.measure import measure
from tasks.preflight import Order, Plan, check
from tasks.resources import release_client, spared_collector
from tasks.runs import Run
from tasks.walk import walk

# Prefect types its own runner as one of a narrower future, which its decorator's parameter does not admit.
RUNNER: TaskRunner[PrefectFuture[Any]] = ThreadPoolTaskRunner(max_workers=64)  # type: ignore[assignment]
DEFAULT_LAKE = "./lake"


measure_task = task(name="measure", retries=1, cache_policy=NO_CACHE, persist_result=False)(measure)


class IncompleteRunError(EvalakeError):
    """A run ended with items that no model answered; a retry of it asks only for those."""


@flow(
    name="evaluate",
    flow_run_name="evaluate-{suite}",
    persist_result=False,
    task_runner=RUNNER,
)
def evaluate(
    suite: str = "command_guard",
    models: list[str] | None = None,
    judges: list[str] | None = None,
    datasets: list[str] | None = None,
    limit: Annotated[int | None, Field(ge=1)] = None,
    replicates: Annotated[int, Field(ge=1)] = 1,
    prompt_types: list[str] | None = None,
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
        lake: The lake; none means EVALAKE_LAKE or ./lake.
        configuration_file: In place of ./evalake.toml.
    """
    where = lake or os.environ.get("EVALAKE_LAKE") or DEFAULT_LAKE
    order = Order(suite, where, models, judges, datasets, limit, replicates, prompt_types, configuration_file)
    return _evaluate(check(order))


def run_id_of(flow_run_id: str) -> str:
    """A run is named by the random end of its flow run's id, so that a retry of the flow run is the same run."""
    return flow_run_id.replace("-", "")[-12:]


@spared_collector()
def _evaluate(plan: Plan) -> str:
    redact_logs()
    flow_run_id = str(flow_run.id)
    context = RunContext(run_id_of(flow_run_id), plan.suite.name, plan.lake, plan.configuration)
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
    collector = Collector(context)
    try:
        collector.extract(plan.datasets)
        with progress.shown(context.run_id, f"{plan.suite.name} {context.run_id}", plan.items):
            walk(context, plan, collector)
        collector.finish()
        collector.derive()
        snapshot_id = measure_task(context, collector.warnings) if collector.has_rows else None
    except BaseException as error:
        runs.save(plan.lake, run.ended("failed", tally=collector.tally, message=_message(error)))
        raise
    finally:
        release_client(context.run_id)
    message = collector.message
    ended = run.ended(collector.state, tally=collector.tally, snapshot_id=snapshot_id, message=message)
    runs.save(plan.lake, ended)
    leave_artifacts(context, ended)
    if ended.state != "completed":
        raise IncompleteRunError(
            f"run {ended.run_id} is incomplete: {message}; run it again to ask only for what is missing"
        )
    return ended.run_id


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, EvalakeError) else f"{type(error).__name__}: {str(error)[:300]}"
