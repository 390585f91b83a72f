"""Missed: the schedules of the last days compared with the runs that there were; what can be made up is started."""

from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.states import Completed
from pydantic import Field

from evalake.admin.missed import DAY, Missed, missed_runs
from evalake.tasks.runtime.alarms import tell_of_missed
from evalake.tasks.runtime.logs import redact_logs

ARTIFACT = "missed-runs"
MADE_UP = ("evaluate", "snapshot")  # flows that mean the same a day later; a canary cannot ask a judge of yesterday


@flow(name="missed", persist_result=False)
def missed(days: Annotated[int, Field(ge=1, le=31)] = 3, make_up: bool = True) -> State[Any]:
    """Say which runs the schedules of the last days promised and nobody made; start those that can be made up.

    A day on which an evaluation or a snapshot did not come at all is made up: once, whoever asks. Anything else that is
    missing is said.

    Args:
        days: How many days before today are looked at.
        make_up: Whether runs are started, or missing ones only said.
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
    tell_of_missed(name, each.day, message)
    return {
        "deployment": name,
        "day": each.day.isoformat(),
        "expected": each.expected,
        "came": each.came,
        "made_up": made_up,
    }
