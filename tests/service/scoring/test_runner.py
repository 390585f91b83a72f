"""The runner takes a lake's scorings from a queue of their own."""

from flows.score_session import queue_of
from tests.e2e.processes import PrefectStack, wait_until


def test_it_serves_the_queue_of_its_lake(idle: PrefectStack) -> None:
    lake = "/a/lake/of/its/own"
    process = idle.start("service.scoring.runner", "1", lake)
    named = {"deployments": {"name": {"any_": [queue_of(lake)]}}}
    (deployment,) = wait_until(lambda: idle.post("/deployments/filter", named), "the runner's deployment")
    assert lake in deployment["description"]
    process.stop()
