"""A run that Prefect's state ended: what is said, and how it goes on; tests/e2e/test_suspend.py presses the buttons."""

from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Pause
from prefect.states import Cancelled, Cancelling, Crashed, Suspended

from evalake.tasks.runtime.suspension import Interruption


def interrupted(state: Any, deployed: bool = True) -> Interruption:
    flow_run = FlowRun.model_construct(id=uuid4(), deployment_id=uuid4() if deployed else None)  # type: ignore[call-arg]
    return Interruption(state, flow_run, "evalake run quiz")


@pytest.mark.parametrize(
    ("interruption", "told"),
    [
        (interrupted(Cancelled()), "cancelled; a rerun asks only for what is missing"),
        (interrupted(Crashed()), "its flow run became Crashed; a rerun asks only for what is missing"),
        (interrupted(Suspended()), "suspended; when resumed, it asks only for what is missing"),
        (
            interrupted(Suspended(), deployed=False),
            "suspended; without a deployment, this command continues it: evalake run quiz",
        ),
    ],
)
def test_it_says_how_the_run_goes_on(interruption: Interruption, told: str) -> None:
    assert interruption.message == told


def test_it_ends_as_its_state_wants_it() -> None:
    left = interrupted(Cancelling()).leave()
    assert left is not None
    assert left.is_cancelled()
    assert interrupted(Crashed()).leave() is None
    with pytest.raises(Pause):
        interrupted(Suspended()).leave()


def test_an_error_of_the_runs_own_is_no_interruption() -> None:
    assert Interruption.of(ValueError("ours"), str(uuid4()), "") is None
