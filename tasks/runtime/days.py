"""The day that a flow run is for: the one it was asked for, else the one for which it was scheduled."""

from datetime import date

from prefect.runtime import flow_run


def day_of_run(asked: date | None = None) -> date:
    """Tell which day the current flow run is for; a run that is made up names the day that it makes up for."""
    scheduled: date = flow_run.scheduled_start_time.date()
    return asked or scheduled
