"""A ceiling shared by many holders: together they never pass it, and none of it is lost."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from evalake.contracts.tables.runs import RUN_RESERVATIONS
from evalake.storage.lake import Lake
from evalake.storage.ledger import append
from evalake.storage.reservations import Amount, BudgetState, Reservation, budget_state, reserve
from tests.integration.storage.rows import call

CEILING = Amount(10.0, 10)


def take(lake: Lake, holder: str, wanted: Amount) -> Amount:
    """Hold back `wanted` where the ceiling has it; returns what is held back."""
    granted = Amount()

    def decide(found: BudgetState) -> Reservation:
        nonlocal granted
        granted = wanted if (found.spent + found.held + wanted).within(CEILING) else Amount()
        return Reservation(granted, Amount())

    reserve(lake, "run", holder, decide)
    return granted


def test_holders_that_ask_at_the_same_moment_never_pass_the_ceiling(lake: Lake) -> None:
    lake.ensure(RUN_RESERVATIONS)
    with ThreadPoolExecutor(6) as pool:
        granted = list(pool.map(lambda number: take(lake, f"h{number}", Amount(3.0, 3)), range(6)))
    assert sum(granted, Amount()) == Amount(9.0, 9)
    assert budget_state(lake, "run").held == Amount(9.0, 9)


def test_what_the_ledger_holds_of_the_run_is_spent(lake: Lake) -> None:
    append(lake, [call(1, run_id="run") | {"cost_usd": 4.0}, call(2, run_id="run") | {"cost_usd": None}])
    append(lake, [call(3, run_id="other") | {"cost_usd": 100.0}, call(4) | {"cost_usd": 50.0, "origin": "import"}])
    assert budget_state(lake, "run").spent == Amount(4.0, 2)
    assert take(lake, "late", Amount(7.0, 1)) == Amount()
    assert take(lake, "late", Amount(6.0, 1)) == Amount(6.0, 1)


def test_what_was_spent_outside_the_ledger_stays_spent_and_a_dead_holder_holds_nothing_back(lake: Lake) -> None:
    reserve(lake, "run", "first", lambda _: Reservation(Amount(5.0, 5), Amount(1.0, 2)))
    reserve(lake, "run", "second", lambda _: Reservation(Amount(1.0, 1), Amount(), dead=("first",)))
    found = budget_state(lake, "run")
    assert found.spent == Amount(1.0, 2)
    assert found.others == {"first": Amount(), "second": Amount(1.0, 1)}


def test_a_sign_of_life_moves_the_beat(lake: Lake) -> None:
    for beat in (1, 2, 3):
        reserve(lake, "run", "first", lambda _: Reservation(Amount(), Amount()))
        assert budget_state(lake, "run").heartbeats == {"first": beat}
    assert budget_state(lake, "run", holder="first").heartbeats == {}


@pytest.mark.parametrize(("usd", "calls", "fits"), [(10.0, 10, True), (10.1, 1, False), (1.0, 11, False)])
def test_an_amount_is_within_another_in_money_and_in_calls(usd: float, calls: int, fits: bool) -> None:
    assert Amount(usd, calls).within(CEILING) is fits
