"""A ceiling over the attempts of a deployed run. tests/e2e/test_dask.py has one over the processes of a cluster."""

from typing import Any

import pytest

from evalake.contracts.tables import RUNS
from tests.e2e.counts import KEY_VARIABLE, are_there_once, key_of
from tests.e2e.processes import ENDS, PrefectStack
from tests.integration.flows.workplace import LIMITS, Workplace

pytestmark = pytest.mark.e2e

RUN = "evaluate/command-guard-nightly"
PRICE = (2000 * 1.0 + 500 * 2.0) / 1e6  # of a call, by the configured price
ITEMS = 160


@pytest.fixture
def work(work: Workplace) -> Workplace:
    work.configure(batch_size=20, limits=LIMITS, key_env=KEY_VARIABLE)
    answer(work, latency=0.2)
    return work


def test_a_retry_under_a_higher_ceiling_goes_on_and_asks_only_what_is_missing(
    stack: PrefectStack, work: Workplace
) -> None:
    limited(work, f"max_cost_usd = {60.5 * PRICE}")
    answer(work, latency=0.2)
    with stack.pool(RUN) as pool:
        stack.worker(pool=pool, **key_of("first"))
        flow_run = stack.run(RUN, work.parameters(work.dataset(ITEMS)))
        assert stack.wait_for(flow_run, *ENDS) == "Failed"
        first = the_run(work)
        assert first["state"] == "incomplete"
        assert 40 * PRICE < first["cost_usd"] <= 60.5 * PRICE
        assert work.asked() == first["calls_made"]
        limited(work, f"max_cost_usd = {ITEMS * 1.5 * PRICE}")
        stack.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        assert stack.wait_for(flow_run, "Completed", "Crashed") == "Completed"
    assert the_run(work)["cost_usd"] == pytest.approx(ITEMS * PRICE)
    assert work.asked() == ITEMS
    assert are_there_once(work, ITEMS)


def answer(work: Workplace, latency: float) -> None:
    """Have each call answered after so many seconds, with the usage that PRICE is of."""
    usage = {"prompt_tokens": 2000, "completion_tokens": 500, "total_tokens": 2500}
    work.server.rule(reply='{"action": "BLOCK"}', usage=usage, latency=latency)


def limited(work: Workplace, ceiling: str) -> None:
    """Put a ceiling at the top of the configuration, in place of an earlier one."""
    lines = [line for line in work.configuration.read_text().splitlines() if not line.startswith("max_")]
    work.configuration.write_text("\n".join([ceiling, *lines]) + "\n")


def the_run(work: Workplace) -> dict[str, Any]:
    (row,) = work.rows(RUNS).iter_rows(named=True)
    return row
