"""A run with a ceiling: what it costs at most, how it ends, and how it goes on."""

import asyncio

import pytest
from prefect.client.orchestration import get_client

from evalake.contracts.tables import CALL_FAILURES, RUNS
from evalake.core.errors import ConfigurationError, UsageError
from evalake.request import RunRequest
from evalake.storage.reservations import budget_state
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.runtime.server import ServerError, shared_slot
from tests.integration.flows.workplace import LIMITS, MODEL, Workplace

PRICE = (2000 * 1.0 + 500 * 2.0) / 1e6  # of a call, by the configured price
USAGE = {"prompt_tokens": 2000, "completion_tokens": 500, "total_tokens": 2500}
ANSWER = '{"action": "BLOCK"}'


@pytest.fixture
def work(work: Workplace) -> Workplace:
    work.server.rule(reply=ANSWER, usage=USAGE, latency=0.02)
    return work


def test_no_more_calls_are_made_than_allowed_and_a_new_run_goes_on(work: Workplace) -> None:
    data = work.dataset(60)
    first = work.run(data, max_calls=25)
    assert (first["state"], first["flow_state"], first["calls_made"]) == ("incomplete", "Failed", 25)
    assert work.asked() == 25
    assert "ceiling of 25 calls is reached" in first["message"]
    assert "35 items were not asked" in first["message"]
    assert (first["calls_failed"], work.rows(CALL_FAILURES).height) == (0, 0)  # nothing failed
    assert work.rows(RESULTS).height == first["rows_landed"] == 25
    second = work.run(data, max_calls=35)
    assert (second["state"], second["calls_made"], second["calls_from_ledger"]) == ("completed", 35, 25)
    third = work.run(data, max_calls=1)
    assert (third["state"], third["calls_from_ledger"], work.asked()) == ("completed", 60, 60), "the ledger is free"


def test_a_run_costs_no_more_than_its_ceiling(work: Workplace) -> None:
    ceiling = 40.5 * PRICE
    run = work.run(work.dataset(100), max_cost_usd=ceiling)
    assert run["state"] == "incomplete"
    assert run["cost_usd"] <= ceiling
    assert run["cost_usd"] > 0.7 * ceiling
    assert work.asked() == run["calls_made"]
    assert budget_state(work.lake, run["run_id"]).held.usd == 0


def test_a_ceiling_below_the_price_of_one_call_asks_nothing(work: Workplace) -> None:
    run = work.run(work.dataset(5), max_cost_usd=1e-6)
    assert (run["state"], run["calls_made"], work.asked()) == ("incomplete", 0, 0)
    assert "5 items were not asked" in run["message"]


def test_the_ceiling_of_the_configuration_holds_where_the_run_names_none(work: Workplace) -> None:
    with work.configuration.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(f"max_calls = 7\n{text}")
    assert work.run(work.dataset(20))["calls_made"] == 7
    assert work.run(work.dataset(20), max_calls=3)["calls_made"] == 3


def test_a_model_without_a_price_is_refused_before_anything_is_asked(work: Workplace) -> None:
    work.configure(price=False)
    with pytest.raises(ConfigurationError, match=f"price of {MODEL} is unknown"):
        work.run(work.dataset(5), max_cost_usd=1.0)
    assert work.rows(RUNS).is_empty()
    assert work.asked() == 0
    run = work.run(work.dataset(5), max_calls=5)
    assert (run["state"], run["message"], run["calls_made"], run["cost_usd"]) == ("completed", None, 5, None)


def test_baselines_are_free_but_are_calls(work: Workplace) -> None:
    free = work.run(work.dataset(10), models=["baseline/always-block"], max_cost_usd=0.001)
    assert (free["state"], free["cost_usd"]) == ("completed", 0.0)
    run = work.run(work.dataset(10), models=["baseline/always-allow"], max_calls=4)
    assert (run["state"], run["calls_made"]) == ("incomplete", 4)


def test_calls_that_fail_count_as_calls(work: Workplace) -> None:
    work.configure(limits=LIMITS.replace("attempts = 2", "attempts = 1"))
    work.server.rule(reply=ANSWER, faults=({"kind": "bad_request", "times": 0},))
    run = work.run(work.dataset(20), max_calls=6)
    assert work.asked() == 6
    assert (run["state"], run["calls_made"], run["calls_failed"]) == ("incomplete", 0, 6)


@pytest.mark.parametrize("ceiling", [{"max_calls": 0}, {"max_cost_usd": 0.0}, {"max_cost_usd": float("nan")}])
def test_a_ceiling_is_above_zero(work: Workplace, ceiling: dict[str, float]) -> None:
    from evalake.tasks.preflight import check

    with pytest.raises(UsageError, match="--max-c"):
        check(RunRequest("command_guard", lake=work.lake.uri, **ceiling))  # type: ignore[arg-type]


def test_a_call_that_is_tried_again_does_not_wait_for_calls_that_wait_for_it(work: Workplace) -> None:
    work.configure(limits=LIMITS.replace("concurrency = 8", "concurrency = 2"))
    work.server.rule(reply=ANSWER, usage=USAGE, faults=({"kind": "server_error", "times": 1},))
    run = work.run(work.dataset(30), max_calls=5)
    assert (run["state"], run["calls_made"], work.asked()) == ("incomplete", 5, 10)


@pytest.mark.parametrize(("limit", "at_once"), [(None, 2), ("shared-by-flows", 1)])
def test_calls_share_the_slots_of_a_limit_of_prefect(limit: str | None, at_once: int) -> None:
    held, most = 0, 0

    async def call() -> None:
        nonlocal held, most
        async with shared_slot(limit):
            held += 1
            most = max(most, held)
            await asyncio.to_thread(int)  # lets the other one in, where it may come
            held -= 1

    async def both() -> None:
        await asyncio.gather(call(), call())

    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name("shared-by-flows", 1)
    asyncio.run(both())
    assert most == at_once


def test_a_limit_that_prefect_does_not_have_is_named() -> None:
    async def call() -> None:
        async with shared_slot("nowhere"):
            pass

    with pytest.raises(ServerError, match="no global concurrency limit nowhere: `evalake prefect gcl create nowhere"):
        asyncio.run(call())
