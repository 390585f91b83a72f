"""The flow missed: compares the schedules of the last days with the runs, and starts missing ones."""

from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.states import Completed
from pydantic import Field

from evalake.admin.maintain import DAY, Missed, missed_runs
from evalake.tasks.runtime.artifacts import emit_missed_alarm
from evalake.tasks.runtime.logs import redact_logs

ARTIFACT = "missed-runs"
MADE_UP = ("evaluate", "snapshot")  # a late canary would not measure the judge of that day


@flow(name="missed", persist_result=False)
def missed(days: Annotated[int, Field(ge=1, le=31)] = 3, make_up: bool = True) -> State[Any]:
    """List the scheduled runs of the last days that did not start; start missing evaluations and snapshots.

    A day without any run of its schedule is made up once; other missing runs are only listed.

    Args:
        days: The number of days before today.
        make_up: Whether to start missing runs.
    """
    redact_logs()
    today = datetime.now(UTC).date()
    with get_client(sync_client=True) as client:
        flows = {each.id: each.name for each in client.read_flows()}
        missed = [
            (f"{flows[each.deployment.flow_id]}/{each.deployment.name}", each)
            for each in missed_runs(client, today, days)
        ]
    rows = [_deal_with(name, each, make_up) for name, each in missed]
    create_table_artifact(rows, key=ARTIFACT, description=f"Runs missed in the {days} days before {today}")
    if not rows:
        return Completed(message=f"no run was missed in the {days} days before {today}")
    made_up = sum(row["made_up"] for row in rows)
    return Completed(name="RunsMissed", message=f"{len(rows)} days with missed runs, {made_up} of them made up")


def _deal_with(name: str, each: Missed, make_up: bool) -> dict[str, Any]:
    made_up = make_up and each.came == 0 and name.partition("/")[0] in MADE_UP
    if made_up:
        run_deployment(
            each.deployment.id,
            parameters={DAY: each.day.isoformat()},
            timeout=0,
            as_subflow=False,
            tags=["make-up"],
            idempotency_key=f"make-up/{each.deployment.id}/{each.day}",
        )
    done = "; it is made up now" if made_up else ""
    message = f"{name} was started {each.came} times of {each.expected} on {each.day}{done}"
    emit_missed_alarm(name, each.day, message)
    return {
        "deployment": name,
        "day": each.day.isoformat(),
        "expected": each.expected,
        "came": each.came,
        "made_up": made_up,
    }
