"""What is asked before each attempt of a call, such as a run's ceiling."""

from evalake.models.attempts import WithoutSlot
from evalake.models.client import Client
from evalake.models.failures import AttemptFailed
from evalake.models.request import Failure
from tests.integration.models.support import QUICK, configuration, request
from tests.servers.model_server import ModelServer


def test_an_attempt_that_is_not_admitted_is_not_made_and_later_ones_are_asked_about(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "server_error", "times": 1}])
    asked: list[float] = []

    async def once(failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        asked.append(failed_cost_usd)
        if len(asked) > 1:
            raise AttemptFailed("budget", "nothing is left")

    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        (outcome,) = client.run([client.call(request("dear"), 0, once)])
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message, outcome.attempts) == ("budget", "nothing is left", 1)
    assert len(model_server.seen) == 1
