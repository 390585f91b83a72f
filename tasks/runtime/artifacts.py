"""What a run leaves in Prefect: tags, artifacts (headline metrics, coverage, a summary) and alarms."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import polars as pl
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.assets import Asset
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext, TaskRunContext
from prefect.events import emit_event
from prefect.runtime import deployment
from prefect.types.names import MAX_ASSET_KEY_LENGTH

from evalake.contracts.contract import Contract
from evalake.contracts.tables import RUNS
from evalake.core.configuration import VIEWER_URL, Configuration
from evalake.core.errors import UsageError
from evalake.core.files import place_in
from evalake.core.redaction import redact
from evalake.reports.coverage import Coverage, as_table
from evalake.reports.page import run_address
from evalake.reports.report import Value
from evalake.reports.tables import measured
from evalake.reports.wording import UNKNOWN, UNRELIABLE, dollars, markdown_text
from evalake.sdk import Suite
from evalake.sdk.figures import Quantity, Unit
from evalake.storage.lake import Lake
from evalake.storage.snapshots import read_metrics
from evalake.tasks.coverage import missing_shares
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Run

REPORTS = "EVALAKE_REPORTS"  # the folder of the reports of runs
REPORTS_URL = "EVALAKE_REPORTS_URL"  # the address at which that folder is served
DEFAULT_REPORTS = "evalake-reports"
LONGEST = 5000  # characters of foreign text
MOST_MODEL_TAGS = 20

logger = logging.getLogger("evalake.runs")


def reports_folder() -> Path:
    """Return the folder of the reports of runs, which may not exist."""
    return Path(os.environ.get(REPORTS) or DEFAULT_REPORTS).absolute()


def tag_flow_run(suite: str, models: Sequence[str], run_id: str) -> None:
    """Add its suite, models and run id to the flow run's tags."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    tags = dict.fromkeys([*context.flow_run.tags, suite, *models[:MOST_MODEL_TAGS], run_id])
    with get_client(sync_client=True) as client:
        client.update_flow_run(context.flow_run.id, tags=list(tags))


def tag_task_run(*tags: str) -> None:
    """Add tags to the task run under way; Prefect records them with its next state.

    A task that has tags before it starts asks the server for their slots, and fails where the server does not answer.
    """
    if (context := TaskRunContext.get()) is not None:
        context.task_run.tags = [*dict.fromkeys([*context.task_run.tags, *tags])]


def assets(lake: Lake, tables: Iterable[Contract]) -> list[str | Asset]:
    """Name tables of a lake as Prefect's assets, by their addresses without what it refuses in them."""
    place = lake.uri.rstrip("/") if "://" in lake.uri else Path(lake.address).as_uri()
    keys = [re.sub(r"[^A-Za-z0-9/:._~-]", "-", f"{place}/{each.table}") for each in tables]
    return [key for key in keys if len(key) <= MAX_ASSET_KEY_LENGTH]


def create_artifacts(context: RunContext, run: Run, covered: Sequence[Coverage]) -> None:
    """Create the artifacts of an ended run, and its report page in the folder of reports."""
    if run.snapshot_id is not None:
        create_table_artifact(
            headline(context, run.snapshot_id),
            key=f"metrics-{run.run_id}",
            description=f"Headline metrics with 95 % intervals; {UNRELIABLE} unreliable. {pages_of(run.run_id)}",
        )
    create_coverage_artifact(run.run_id, covered)
    summary = _summary(run, _report(context, run))
    create_markdown_artifact(summary, key=f"run-{run.run_id}", description=f"{run.suite} {run.run_id}")


def create_coverage_artifact(run_id: str, covered: Sequence[Coverage]) -> None:
    """Create a table of the run's coverage by model, judge and dataset."""
    if covered:
        headings, texts = as_table(covered)
        rows = [dict(zip(headings, row, strict=True)) for row in texts]
        create_table_artifact(rows, key=f"coverage-{run_id}", description="Asked and answered")


def headline(context: RunContext, snapshot_id: str) -> list[dict[str, Any]]:
    """Build one row for each model and judge, with the suite's headline metrics as columns: value, interval and n.

    The share of missing items stands beside the name, where there are any.
    """
    rows = [row for row in read_metrics(context.lake, snapshot_id).iter_rows(named=True) if row["slice"] == "all"]
    subjects = dict.fromkeys((row["model"], row["judge"]) for row in rows)
    units = _units(context.suite)
    shares = missing_shares(context.lake).filter(run_id=context.run_id).collect()
    lacks = {(model, judge or None): share for _, model, judge, share in shares.iter_rows() if share}
    values = {
        (row["model"], row["judge"], row["metric"]): _formatted(row, units.get(row["metric"], Unit.SCORE))
        for row in rows
    }
    return [
        {
            "model": model,
            **({"judge": judge} if judge else {}),
            **({"missing": f"{lacks.get((model, judge), 0.0):.1%}"} if lacks else {}),
            **{m: values.get((model, judge, m), UNKNOWN) for m in context.suite.metrics.headline},
        }
        for model, judge in subjects
    ]


def _units(suite: Suite) -> dict[str, Unit]:
    """Find the unit of each metric that a figure of the suite shows."""
    shown = [getattr(figure, each.name) for figure in suite.presentation.figures for each in fields(figure)]
    quantities = chain.from_iterable(each if isinstance(each, tuple) else (each,) for each in shown)
    return {each.metric: each.unit for each in quantities if isinstance(each, Quantity)}


def _formatted(row: Mapping[str, Any], unit: Unit) -> str:
    """Format a value with its interval and n, like the terminal."""
    names = ("value", "n", "ci_low", "ci_high", "reliable")
    cell = measured(Value(**{name: row[name] for name in names}), unit)
    return f"{cell.text}{UNRELIABLE * cell.doubtful} {cell.interval}".rstrip() + f", n = {row['n']:,}"


def pages_of(run_id: str) -> str:
    """Link to a run's pages in Markdown; without a known address, name the command that shows them."""
    if os.environ.get(VIEWER_URL):
        return f"[Its pages]({run_address(run_id)})"
    return "`evalake view` shows its pages."


def _report(context: RunContext, run: Run) -> str:
    """Write the run's report page; returns its place as Markdown. The command writes the page of its own run."""
    from evalake.reports.page import write_page
    from evalake.tasks.report import build_report

    if run.snapshot_id is None or not writes_reports():
        return f"`evalake report {run.run_id}` writes it" if run.snapshot_id else "none: nothing was measured"
    try:
        folder = place_in(reports_folder(), run.run_id)
        page = write_page(build_report(context.lake, run.run_id), folder)
    except Exception as error:  # a page, as in a read-only folder, costs no run its state and alarms
        logger.warning("no report: %s", error, exc_info=not isinstance(error, UsageError))
        return f"`evalake report {run.run_id}` writes it"
    logger.info("report: %s", page)
    return link_to(page)


def writes_reports() -> bool:
    """Tell whether this flow run writes pages: it belongs to a deployment, or a folder is named."""
    return bool(os.environ.get(REPORTS) or deployment.id)


def link_to(page: Path) -> str:
    """Write a page's link in Markdown, or its path where no server serves the folder of reports."""
    if served := os.environ.get(REPORTS_URL):
        return f"[{page.name}]({served.rstrip('/')}/{page.relative_to(reports_folder()).as_posix()})"
    return f"`{page}`"


def _summary(run: Run, report: str) -> str:
    tally = run.tally
    cost = "unknown" if tally.cost_usd is None else dollars(tally.cost_usd)
    return f"""# {run.suite}: {run.state}

| | |
|---|---|
| run | `{run.run_id}` |
| snapshot | `{run.snapshot_id or "none"}` |
| report | {report} |
| models | {markdown_text(", ".join(run.models), LONGEST)} |
| samples, items | {run.samples}, {run.items} |
| calls made, from the ledger, failed | {tally.calls_made}, {tally.calls_from_ledger}, {tally.calls_failed} |
| rows landed, already present | {tally.rows_landed}, {tally.rows_already_present} |
| rows in quarantine | {tally.rows_quarantined} |
| cost in USD | {cost} |

{markdown_text(run.message or "", LONGEST)}
"""


# Alarms: evalake's events, to which the automations of evalake/server/local/automations.yaml react.


QUARANTINE_GREW = "evalake.quarantine.grew"
COST_ABOVE_LIMIT = "evalake.cost.above-limit"
RUN_MISSED = "evalake.run.missed"
TREND_CHANGED = "evalake.trend.changed"


def emit_run_alarms(lake: Lake, configuration: Configuration, run_id: str) -> None:
    """Emit an alarm for a run with refused rows, and for a day whose runs cost more than the configured limit."""
    today = datetime.now(UTC).date()
    runs = lake.frame(RUNS).select(
        pl.col("rows_quarantined").filter(pl.col("run_id") == run_id).sum(),
        pl.col("cost_usd").filter(pl.col("started_at").dt.date() == today).sum(),
    )
    refused, cost = runs.collect().row(0)
    where = str(redact(lake.uri))
    if refused:
        _emit(QUARANTINE_GREW, f"evalake.run.{run_id}", f"run {run_id} refused {refused} rows", run_id, where)
    limit = configuration.alarms.cost_usd_a_day
    if limit is not None and cost > limit:
        message = f"the runs of {today} have cost {cost:.2f} US dollars, above {limit:g}"
        _emit(COST_ABOVE_LIMIT, "evalake.cost", message, today.isoformat(), where)


def emit_change_alarm(lake: Lake, series: str, message: str, run_id: str) -> None:
    """Emit an alarm for a metric that has left the beginning of its series, as the run shows."""
    _emit(TREND_CHANGED, f"evalake.trend.{series}", message, f"{series} {run_id}", str(redact(lake.uri)))


def emit_missed_alarm(deployment: str, day: date, message: str) -> None:
    """Emit an alarm for a day on which a deployment had fewer runs than its schedule."""
    _emit(RUN_MISSED, f"evalake.deployment.{deployment}", message, f"{deployment} {day}", "")


def _emit(event: str, resource: str, message: str, occasion: str, lake: str) -> None:
    payload: Mapping[str, Any] = {"message": message, "lake": lake}
    emit_event(
        event,
        resource={"prefect.resource.id": resource, "prefect.resource.name": message},
        payload=dict(payload),
        id=uuid5(NAMESPACE_URL, "/".join((event, lake, occasion))),
    )
