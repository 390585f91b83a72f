"""A process's part of a run's ceiling: no call is refused that there is room for."""

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from evalake.contracts.tables import CALLS, RUN_RESERVATIONS
from evalake.core.configuration import Configuration
from evalake.models.request import Reply, Request
from evalake.storage.lake import Lake
from evalake.storage.ledger import append
from evalake.storage.reservations import Amount, Ceiling, Reservation, reserve
from evalake.tasks.runtime import budget as runtime_budget
from evalake.tasks.runtime.budget import Budget, Spending
from tests.integration.storage.rows import call

REQUEST = Request("hosted_vllm/guard", ({"role": "user", "content": "ls"},), {})


def test_a_call_that_ends_while_room_is_looked_for_takes_none_of_it(tmp_path: Path) -> None:
    """Its reply is in the ledger when that is read, and it was among the calls on their way when that was begun."""
    lake = Lake(str(tmp_path / "lake"))
    first, second = (Spending(REQUEST) for _ in range(2))

    async def admit_both() -> None:
        loop = asyncio.get_running_loop()

        def flush() -> None:
            if first.is_admitted and not lake.frame(CALLS).collect().height:
                append(lake, [call(1, run_id="run")])
                asyncio.run_coroutine_threadsafe(end(first), loop).result()

        async def end(spending: Spending) -> None:
            budget.end(spending, Reply("BLOCK"))

        budget = Budget(lake, "run", Ceiling(calls=2), Configuration(), flush, {})
        await budget.admit(first, 0.0, nullcontext)
        await budget.admit(second, 0.0, nullcontext)
        budget.end(second, Reply("BLOCK"))
        await budget.rest()

    asyncio.run(admit_both())
    assert second.is_admitted


def test_calls_that_wait_for_another_process_look_together_what_it_gave_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on its own, they would commit to the lake without a pause for as long as they wait."""
    monkeypatch.setattr(runtime_budget, "LOOK_SECONDS", 0.5)
    lake, calls, looks = Lake(str(tmp_path / "lake")), 50, 8
    reserve(lake, "run", "another", lambda _: Reservation(Amount(calls=calls), Amount()))

    async def admit_all() -> float:
        budget = Budget(lake, "run", Ceiling(calls=calls), Configuration(), lambda: None, {})
        began, first = time.monotonic(), lake.version(RUN_RESERVATIONS) or 0
        waiting = [asyncio.create_task(budget.admit(Spending(REQUEST), 0.0, nullcontext)) for _ in range(calls)]
        while (lake.version(RUN_RESERVATIONS) or 0) < first + looks:
            await asyncio.wait(waiting, timeout=0.02)
        took = time.monotonic() - began
        reserve(lake, "run", "another", lambda _: Reservation(Amount(), Amount()))
        await asyncio.gather(*waiting)
        return took

    assert asyncio.run(admit_all()) >= (looks - 2) * 0.5
