"""Alarms: evalake's events, to which the automations of deploy/automations.yaml react.

Prefect's server keeps one event of an id, so a repeated alarm has no effect.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import polars as pl
from prefect.events import emit_event

from evalake.contracts.tables import RUNS
from evalake.core.configuration import Configuration
from evalake.core.redaction import redact
from evalake.storage.lake import Lake

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
