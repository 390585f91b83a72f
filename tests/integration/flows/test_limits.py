"""Limits of a run: ceilings, endpoints and rounds that settle a rule."""

import asyncio
import json
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client

from evalake.contracts.tables import CALL_FAILURES, RUNS
from evalake.core.errors import ConfigurationError, SourceError, UsageError
from evalake.decisions.sample_size import Round, settle
from evalake.reports.ranking import Verdict
from evalake.request import RunRequest
from evalake.run import carry_out
from evalake.storage.reservations import UNLIMITED, Ceiling, budget_state
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.runtime.server import shared_slot
from tests.integration.flows.workplace import LIMITS, MODEL, Workplace

# A run with a ceiling: what it costs at most, how it ends, and how it goes on.

PRICE = (2000 * 1.0 + 500 * 2.0) / 1e6  # of a call, by the configured price
USAGE = {"prompt_tokens": 2000, "completion_tokens": 500, "total_tokens": 2500}
ANSWER = '{"action": "BLOCK"}'


@pytest.fixture
def priced(work: Workplace) -> Workplace:
    work.server.rule(reply=ANSWER, usage=USAGE, latency=0.02)
    return work


def test_no_more_calls_are_made_than_allowed_and_a_new_run_goes_on(priced: Workplace) -> None:
    data = priced.dataset(60)
    first = priced.run(data, max_calls=25)
    assert (first["state"], first["flow_state"], first["calls_made"]) == ("incomplete", "Failed", 25)
    assert priced.asked() == 25
    assert "ceiling of 25 calls is reached" in first["message"]
    assert "35 items were not asked" in first["message"]
    assert (first["calls_failed"], priced.rows(CALL_FAILURES).height) == (0, 0)  # nothing failed
    assert priced.rows(RESULTS).height == first["rows_landed"] == 25
    second = priced.run(data, max_calls=35)
    assert (second["state"], second["calls_made"], second["calls_from_ledger"]) == ("completed", 35, 25)
    third = priced.run(data, max_calls=1)
    assert (third["state"], third["calls_from_ledger"], priced.asked()) == ("completed", 60, 60), "the ledger is free"


def test_a_run_costs_no_more_than_its_ceiling(priced: Workplace) -> None:
    ceiling = 40.5 * PRICE
    run = priced.run(priced.dataset(100), max_cost_usd=ceiling)
    assert run["state"] == "incomplete"
    assert run["cost_usd"] <= ceiling
    assert run["cost_usd"] > 0.7 * ceiling
    assert priced.asked() == run["calls_made"]
    assert budget_state(priced.lake, run["run_id"]).held.usd == 0


def test_a_ceiling_below_the_price_of_one_call_asks_nothing(priced: Workplace) -> None:
    run = priced.run(priced.dataset(5), max_cost_usd=1e-6)
    assert (run["state"], run["calls_made"], priced.asked()) == ("incomplete", 0, 0)
    assert "5 items were not asked" in run["message"]


def test_the_ceiling_of_the_configuration_holds_where_the_run_names_none(priced: Workplace) -> None:
    with priced.configuration.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(f"max_calls = 7\n{text}")
    assert priced.run(priced.dataset(20))["calls_made"] == 7
    assert priced.run(priced.dataset(20), max_calls=3)["calls_made"] == 3


def test_a_model_without_a_price_is_refused_before_anything_is_asked(priced: Workplace) -> None:
    priced.configure(price=False)
    with pytest.raises(ConfigurationError, match=f"price of {MODEL} is unknown"):
        priced.run(priced.dataset(5), max_cost_usd=1.0)
    assert priced.rows(RUNS).is_empty()
    assert priced.asked() == 0
    run = priced.run(priced.dataset(5), max_calls=5)
    assert (run["state"], run["message"], run["calls_made"], run["cost_usd"]) == ("completed", None, 5, None)


def test_baselines_are_free_but_are_calls(priced: Workplace) -> None:
    free = priced.run(priced.dataset(10), models=["baseline/always-block"], max_cost_usd=0.001)
    assert (free["state"], free["cost_usd"]) == ("completed", 0.0)
    run = priced.run(priced.dataset(10), models=["baseline/always-allow"], max_calls=4)
    assert (run["state"], run["calls_made"]) == ("incomplete", 4)


def test_calls_that_fail_count_as_calls(priced: Workplace) -> None:
    priced.configure(limits=LIMITS.replace("attempts = 2", "attempts = 1"))
    priced.server.rule(reply=ANSWER, faults=({"kind": "bad_request", "times": 0},))
    run = priced.run(priced.dataset(20), max_calls=6)
    assert priced.asked() == 6
    assert (run["state"], run["calls_made"], run["calls_failed"]) == ("incomplete", 0, 6)


@pytest.mark.parametrize("ceiling", [{"max_calls": 0}, {"max_cost_usd": 0.0}, {"max_cost_usd": float("nan")}])
def test_a_ceiling_is_above_zero(priced: Workplace, ceiling: dict[str, float]) -> None:
    from evalake.tasks.preflight import check

    with pytest.raises(UsageError, match="--max-c"):
        check(RunRequest("command_guard", lake=priced.lake.uri, **ceiling))  # type: ignore[arg-type]


def test_a_call_that_is_tried_again_does_not_wait_for_calls_that_wait_for_it(priced: Workplace) -> None:
    priced.configure(limits=LIMITS.replace("concurrency = 8", "concurrency = 2"))
    priced.server.rule(reply=ANSWER, usage=USAGE, faults=({"kind": "server_error", "times": 1},))
    run = priced.run(priced.dataset(30), max_calls=5)
    assert (run["state"], run["calls_made"], priced.asked()) == ("incomplete", 5, 10)


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


@pytest.mark.parametrize("model", ["gpt-4", "openai/gpt-4"])
def test_a_limit_that_prefect_does_not_have_is_named(work: Workplace, model: str) -> None:
    options = f'[models."{model}"]\napi_base = "{work.server.api_base}"\napi_key_env = "HOME"\n'
    work.configuration.write_text(f'[providers.openai]\nprefect_limit = "nowhere"\n{options}')
    said = str(work.run(work.dataset(1), models=[model])["error"])
    assert "no global concurrency limit nowhere: `evalake prefect gcl create nowhere" in said


# Settling rules by runs in rounds: calls saved, and no call beyond the budget.

SAMPLES = 200


def commands(folder: Path, words: str = "command") -> str:
    """A dataset of malicious and harmless commands in turns."""
    kinds = {"label": "malicious", "category": "file-read"}, {"label": "harmless", "category": None}
    lines = [{"sample_id": f"s{n}", "command": f"{words} {n:05d}", **kinds[n % 2]} for n in range(SAMPLES)]
    file = folder / "commands.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def settled(work: Workplace, rule: str, budget: Ceiling = UNLIMITED) -> list[Round]:
    order = work.parameters(commands(work.folder))

    def ask(size: int, ceiling: Ceiling) -> str:
        return carry_out(RunRequest(**order, pooled=size, max_cost_usd=ceiling.usd, max_calls=ceiling.calls))

    return list(settle(work.lake, ask, SAMPLES, [rule], model=MODEL, against=None, budget=budget))


def test_rounds_ask_what_is_new_until_the_rule_is_decided(work: Workplace) -> None:
    (only,) = settled(work, "malicious_detection_rate >= 0.5")
    assert (only.gate.verdict, only.calls_made, work.asked()) == (Verdict.PASS, 40, 40)  # of 200
    rounds = settled(work, "accuracy >= 0.5")  # it blocks everything: right half of the time
    assert rounds[-1].samples == SAMPLES
    assert [each.calls_made for each in rounds] == [0, 20, 30, 45, 65]
    assert work.asked() == SAMPLES


def test_the_budget_is_of_all_rounds_together(work: Workplace) -> None:
    cost = work.run(work.dataset(1))["cost_usd"]
    rounds = settled(work, "accuracy >= 0.5", Ceiling(70.5 * cost))
    assert rounds[-1].gate.verdict is Verdict.UNDECIDED
    assert "incomplete" in (rounds[-1].stopped or "")
    assert sum(each.cost_usd or 0 for each in rounds) <= 70.5 * cost
    assert 40 < sum(each.calls_made for each in rounds) <= 70


def test_rounds_of_a_dataset_that_changes_decide_nothing(work: Workplace) -> None:
    def ask(size: int, _: Ceiling) -> str:
        return carry_out(RunRequest(**work.parameters(commands(work.folder, f"command of {size}")), pooled=size))

    with pytest.raises(SourceError, match="a dataset changed before the run"):
        list(settle(work.lake, ask, SAMPLES, ["accuracy >= 0.5"], model=MODEL, against=None, budget=UNLIMITED))


def test_all_rounds_together_make_no_more_calls_than_they_may(work: Workplace) -> None:
    rounds = settled(work, "accuracy >= 0.5", Ceiling(calls=60))
    assert [each.calls_made for each in rounds] == [40, 20]
    assert (rounds[-1].gate.verdict, rounds[-1].stopped) == (Verdict.UNDECIDED, "the budget is used up")
    assert work.asked() == 60
