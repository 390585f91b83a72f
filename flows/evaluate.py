"""The flow evaluate: the way of a row from a dataset to a metric snapshot, for any suite; collect continues runs."""

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import polars as pl
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort, TerminationSignal
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import MaterializingTask
from prefect.utilities.annotations import quote

from evalake.contracts.tables import BATCH_JOBS, METRIC_SNAPSHOTS, RUNS, SAMPLES, SNAPSHOTS
from evalake.core.errors import EvalakeError
from evalake.core.phases import phase
from evalake.decisions.trend import headline_changes
from evalake.models.telemetry import current_trace
from evalake.request import OPTIONS, RunRequest
from evalake.sdk import Dataset
from evalake.storage import batch_jobs
from evalake.suites.registry import suite as find_suite
from evalake.tasks.collect import Collector
from evalake.tasks.extract import Extracted, extract, parameters_of
from evalake.tasks.jobs import Jobs, cancel_jobs, have_news, require_its_endpoint
from evalake.tasks.measure import inputs as measured_from
from evalake.tasks.measure import measure, save_usage
from evalake.tasks.plan import log_estimate
from evalake.tasks.preflight import NOT_KEPT, Plan, carried, check, log_plan, plan_of
from evalake.tasks.runtime import progress, runs
from evalake.tasks.runtime.artifacts import (
    assets,
    create_artifacts,
    emit_change_alarm,
    emit_run_alarms,
    tag_flow_run,
    tag_task_run,
)
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.form import (
    ConfigurationFile,
    LakeUri,
    current_attempt,
    day_of_run,
    evaluate_run_name,
    flow_inputs,
    run_id_of,
    started_by,
    takes_request,
)
from evalake.tasks.runtime.logs import observed
from evalake.tasks.runtime.orders import continued, in_turn, require_unchanged, warn_of_other_machines
from evalake.tasks.runtime.resources import end_attempt, rare_garbage_collection, return_arrays, return_memory
from evalake.tasks.runtime.runner import task_runner
from evalake.tasks.runtime.runs import OVERTAKEN, OvertakenError, Run, require_newest
from evalake.tasks.runtime.suspension import INTERRUPTIONS, Interruption, watching
from evalake.tasks.walk import walk


def _plan(request: RunRequest) -> Plan:
    tag_task_run(request.suite)
    return plan_of(request)


def _extract(context: RunContext, datasets: Sequence[Dataset]) -> Extracted:
    tag_task_run(context.suite_name)
    return extract(context.lake, context.run_id, datasets)


def _measure(context: RunContext, warnings: Sequence[str] = ()) -> str:
    tag_task_run(context.suite_name)
    return measure(context, warnings)


plan_task = task(name="plan", cache_policy=NO_CACHE, persist_result=False)(_plan)
extract_task = MaterializingTask(_extract, name="extract", assets=[], cache_policy=NO_CACHE, persist_result=False)
measure_task = MaterializingTask(
    _measure, name="measure", assets=[], retries=1, cache_policy=NO_CACHE, persist_result=False
)

WAITING = "Waiting"
"""The name of the final state of a flow run whose run waits for batch jobs."""
RETRIES, RETRY_SECONDS = 2, 1800
"""The number of retries of a scheduled run after transient failures, and the seconds before each."""


class IncompleteRunError(EvalakeError):
    """A run ended with more missing items than allowed; a retry asks only for these."""


@flow(
    name="evaluate",
    flow_run_name=evaluate_run_name,
    persist_result=False,
    task_runner=task_runner(),
    validate_parameters=False,  # the request does, with errors in one sentence
)
@takes_request(RunRequest)
def evaluate(request: RunRequest) -> str | State[Any]:
    """Run a suite: make the calls that the ledger does not answer, land every row once, and snapshot the metrics.

    Returns the run's id, or the state of a cancelled or waiting run. Raises IncompleteRunError at the end where more is
    missing than `max_missing` allows.
    """
    flow_run_id = str(flow_run.id)
    with observed(f"evaluate {request.suite}", flow_run_id, run_id_of(flow_run_id), request.suite):
        plan = plan_task.with_options(task_run_name=f"plan {request.suite}")(request)
        order = plan.lake, plan.suite.name, plan.parameters, run_id_of(flow_run_id)
        warn_of_other_machines(*order)
        with in_turn(*order) if plan.batched else nullcontext():
            return _evaluate(plan, day_of_run(request.day))


@rare_garbage_collection()
def _evaluate(plan: Plan, day: date) -> str | State[Any]:
    flow_run_id, started_at = str(flow_run.id), datetime.now(UTC)
    context, run = _begin(plan, day, flow_run_id, started_at)
    publisher: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=1)
    collector = Collector(context, publisher)
    try:
        watch = watching(context, flow_run_id)
        with publisher, runs.alive(plan.lake, run, lambda: collector.tally), watch:
            snapshot_id = _carry_out(context, plan, collector)
        require_newest(plan.lake, run.run_id, started_at)
    except BaseException as error:
        if runs.yield_to_newer_attempt(plan.lake, run):
            raise Abort(OVERTAKEN) from error  # Prefect then does not change the flow run
        interruption = Interruption.of(error, flow_run_id, plan.request.command)
        reason = interruption.message if interruption else _message(error)
        try:
            runs.save(plan.lake, run.ended("failed", tally=collector.tally, message=reason))
        except OvertakenError:
            raise Abort(OVERTAKEN) from error
        if interruption and interruption.is_cancelled:
            cancel_jobs(context, run.run_id)
        if interruption and (state := interruption.leave()):
            return state
        raise
    finally:
        end_attempt(context)
    return _end(context, plan, run, collector, snapshot_id)


def _begin(plan: Plan, day: date, flow_run_id: str, started_at: datetime) -> tuple[RunContext, Run]:
    """Land the row of a run that begins, or of the next attempt of one that is continued."""
    attempt = current_attempt()
    run_id = continued(plan.lake, plan.suite.name, plan.parameters, plan.datasets) or run_id_of(flow_run_id)
    require_unchanged(plan.lake, run_id, plan.parameters, plan.datasets)
    here, trace = uuid4().hex, current_trace()
    context = RunContext(run_id, plan.suite.name, plan.lake, plan.configuration, here, trace, plan.ceiling, started_at)
    context = replace(context, batched=plan.batched | batch_jobs.models_with_jobs(plan.lake))
    tag_flow_run(plan.suite.name, (*plan.models, *plan.judges), run_id)
    log_plan(plan)
    run = Run(
        run_id=run_id,
        suite=plan.suite.name,
        origin="run",
        parameters={
            **plan.parameters,
            "day": day.isoformat(),
            "estimate": log_estimate(context, plan),
            **runs.criteria_of(context, plan.prompt_types),
        },
        dataset_versions=runs.versions_of(plan.datasets),
        models=plan.models,
        judges=plan.judges,
        samples=plan.samples,
        items=plan.items,
        started_at=started_at,
        flow_run_id=flow_run_id,
    )
    run = runs.begin(plan.lake, run, attempt, started_by(flow_run_id, attempt))
    runs.mark_lost(plan.lake)
    return context, run


def _end(context: RunContext, plan: Plan, run: Run, collector: Collector, snapshot_id: str | None) -> str | State[Any]:
    """Save how a run has ended, and tell of it. Raises IncompleteRunError where more is missing than allowed."""
    message = collector.message
    run = replace(run, judges=collector.judges(plan.judges))
    ended = run.ended(collector.state, tally=collector.tally, snapshot_id=snapshot_id, message=message)
    runs.save(plan.lake, ended)
    if collector.waiting:
        return Completed(name=WAITING, message=message)
    create_artifacts(context, ended, collector.covered)
    emit_run_alarms(plan.lake, plan.configuration, ended.run_id)
    for change in headline_changes(plan.lake, [ended.suite], ended.run_id):
        if change.run_id == ended.run_id:
            emit_change_alarm(plan.lake, change.series, change.sentence, ended.run_id)
    if ended.state != "completed":
        if collector.failed_transiently:
            _retry_if_scheduled(str(flow_run.id))
        raise IncompleteRunError(
            f"run {ended.run_id} is incomplete: {message}; run it again to ask only for what is missing"
        )
    return ended.run_id


def _carry_out(context: RunContext, plan: Plan, collector: Collector) -> str | None:
    """Execute a run from samples to metrics; returns the snapshot's id, None without rows."""
    suite, lake = plan.suite, plan.lake
    extracting = extract_task.with_options(assets=assets(lake, (SAMPLES,)), task_run_name=f"extract {suite.name}")
    with phase("extract the samples"):
        extracted = extracting(context, cast("Sequence[Dataset]", quote(plan.datasets)))
    collector.take(extracted, plan.datasets)
    jobs = Jobs(context, plan.batched) if context.batched else None
    title = f"{plan.suite.name} {context.run_id}"
    with phase("call the models and score"), progress.shown(context.run_id, title, plan.items):
        if jobs is not None:
            jobs.collect()
        try:
            walk(context, plan, collector.add, jobs)
        except INTERRUPTIONS:
            collector.stop()
            raise
    plan.release_samples()
    with phase("land the last rows"):
        collector.finish()
    return_memory()
    return_arrays()
    if jobs is not None and (waiting := jobs.message):
        collector.waiting = waiting
        return None
    with phase("derive rows and coverage"):
        collector.derive()
        save_usage(plan.lake, context.run_id, collector.calls.pairs)
        collector.cover(plan.judges, plan.sources, plan.tolerance)
    if not collector.has_rows:
        return None
    read = measured_from(suite)
    measuring = measure_task.with_options(
        assets=assets(lake, (SNAPSHOTS, METRIC_SNAPSHOTS)),
        asset_deps=assets(lake, read),
        task_run_name=f"measure {suite.name}",
    )
    with phase("measure"):
        return measuring(context)


def _retry_if_scheduled(flow_run_id: str) -> None:
    """Have Prefect retry a scheduled flow run later: the ledger answers all but the missing calls."""
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(UUID(flow_run_id))
        if run.auto_scheduled:
            policy = run.empirical_policy.model_copy(update={"retries": RETRIES, "retry_delay": RETRY_SECONDS})
            client.update_flow_run(run.id, empirical_policy=policy)


def _message(error: BaseException) -> str:
    if isinstance(error, TerminationSignal | CancelledError | SystemExit):
        return "its process was terminated; a rerun asks only for what is missing"
    return str(error) if isinstance(error, EvalakeError) else f"{type(error).__name__}: {str(error)[:300]}"


class CollectError(EvalakeError):
    """Some waiting runs could not be continued; the others were."""


@flow(name="collect", persist_result=False)
def collect(lake: LakeUri = None, configuration_file: ConfigurationFile = None) -> State[Any]:
    """Continue each run with an ended batch job: land its replies, and make the calls that follow.

    Raises CollectError, after the other jobs and runs, where one fails or its provider cannot be asked.

    Args:
        configuration_file: Instead of ./evalake.toml; the runs are continued with it.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    if not where.exists(BATCH_JOBS):
        return Completed(message="the lake has no batch jobs")
    failures: list[str] = []
    unfinished = pl.col("state").is_in(["cancelling", "collected"])  # replies are paid, or files lie at the provider
    for job in batch_jobs.jobs(where, unfinished):  # their runs do not go on
        context = RunContext(job.run_id, "", where, configuration, batched=frozenset({job.model}))
        with _noted(failures, f"batch job {job.job_id}"):
            require_its_endpoint(context, job)
            work = Jobs(context, frozenset())
            work.collect()
            failures += (f"batch job {job.job_id}: {note}" for note in work.notes)
    waiting = where.frame(RUNS).filter(pl.col("run_id").is_in(batch_jobs.waiting_runs(where))).collect()
    continued = 0
    for run in waiting.sort("started_at").iter_rows(named=True):
        with _noted(failures, run["run_id"]):
            if not have_news(RunContext(run["run_id"], run["suite"], where, configuration), run):
                continue
            file = Path(configuration_file) if configuration_file else None
            of_run = parameters_of(where, find_suite(run["suite"], where), run["run_id"])
            kept = {name: given for name, given in of_run.items() if given not in (None, [], (), "")}
            asked = {name: kept[name] for name in OPTIONS.keys() & kept.keys() - {*NOT_KEPT}}
            request = RunRequest(run["suite"], lake=where.uri, configuration_file=file, **asked)
            plan = check(request)
            require_unchanged(where, run["run_id"], plan.parameters, plan.datasets)
            with carried(request, plan):
                state = evaluate(**request.parameters, return_state=True)
            continued += 1
            if not state.is_completed():
                failures.append(f"{run['run_id']}: {state.message}")
    told = f"{waiting.height} runs wait for batch jobs, {continued} of them were continued"
    if failures:
        raise CollectError(f"{told}; {len(failures)} failures: {'; '.join(failures)}")
    return Completed(message=told)


@contextmanager
def _noted(failures: list[str], what: str) -> Iterator[None]:
    """Note an error of the block, so that what comes after it is done, too."""
    try:
        yield
    except EvalakeError as error:
        failures.append(f"{what}: {error}")
