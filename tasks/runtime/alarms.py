"""Alarms: events of evalake's own, on which the automations of deploy/automations.yaml act.

The server keeps one event of an id, so what is found again is told once.
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


def tell_of_run(lake: Lake, configuration: Configuration, run_id: str) -> None:
    """Tell of a run that refused rows, and of a day whose runs have cost more than the configuration's limit."""
    today = datetime.now(UTC).date()
    refused, cost = _refused_and_paid(lake, run_id, today)
    where = str(redact(lake.uri))
    if refused:
        _tell(QUARANTINE_GREW, f"evalake.run.{run_id}", f"run {run_id} refused {refused} rows", run_id, where)
    limit = configuration.alarms.cost_usd_a_day
    if limit is not None and cost > limit:
        message = f"the runs of {today} have cost {cost:.2f} US dollars, above {limit:g}"
        _tell(COST_ABOVE_LIMIT, "evalake.cost", message, today.isoformat(), where)


def tell_of_change(lake: Lake, series: str, message: str, run_id: str) -> None:
    """Tell of a metric that left where its series began, as the run showed it."""
    _tell(TREND_CHANGED, f"evalake.trend.{series}", message, f"{series} {run_id}", str(redact(lake.uri)))


def tell_of_missed(deployment: str, day: date, message: str) -> None:
    """Tell of a day on which a deployment was not started as often as its schedule says."""
    _tell(RUN_MISSED, f"evalake.deployment.{deployment}", message, f"{deployment} {day}", "")


def _refused_and_paid(lake: Lake, run_id: str, today: date) -> tuple[int, float]:
    """Count the rows that the run refused, and sum the known cost of all runs that began on the day."""
    runs = lake.frame(RUNS).select(
        pl.col("rows_quarantined").filter(pl.col("run_id") == run_id).sum(),
        pl.col("cost_usd").filter(pl.col("started_at").dt.date() == today).sum(),
    )
    refused, cost = runs.collect().row(0)
    return int(refused), float(cost)


def _tell(event: str, resource: str, message: str, occasion: str, lake: str) -> None:
    payload: Mapping[str, Any] = {"message": message, "lake": lake}
    emit_event(
        event,
        resource={"prefect.resource.id": resource, "prefect.resource.name": message},
        payload=dict(payload),
        id=uuid5(NAMESPACE_URL, "/".join((event, lake, occasion))),
    )
