"""The ledger: replies found again, written by one writer, and paid for within reservations."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.exceptions import PanicException

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS
from evalake.contracts.tables.runs import RUN_RESERVATIONS
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake, Table
from evalake.storage.ledger import COMMIT_AFTER_ROWS, LedgerIndex, LedgerWriter, append
from evalake.storage.reservations import Amount, BudgetState, Reservation, budget_state, reserve
from tests.integration.storage.rows import call, key_of

# The ledger: the first committed reply of a key is the reply, for ever.


def test_the_reply_committed_first_wins_whatever_its_time(lake: Lake) -> None:
    ledger.append(lake, [call(1, response="first")])
    ledger.append(lake, [{**call(1, response="second"), "answered_at": call(1)["answered_at"].replace(year=2020)}])
    assert LedgerIndex.read(lake).fetch([key_of(call(1))])[key_of(call(1))]["response"] == "first"
    assert ledger.replies(lake.frame(CALLS)).collect()["response"].to_list() == ["first"]


def test_of_two_replies_in_one_commit_the_first_is_kept(lake: Lake) -> None:
    ledger.append(lake, [call(1, response="first"), call(2), call(1, response="second")])
    assert lake.frame(CALLS).collect().sort("request")["response"].to_list() == ["first", "yes"]


def test_rows_carry_the_version_that_brought_them_also_when_writers_race(lake: Lake) -> None:
    lake.ensure(CALLS)
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda number: ledger.append(lake, [call(number)]), range(24)))
    rows = lake.frame(CALLS).collect()
    assert sorted(versions) == sorted(rows["ledger_version"])
    assert len(set(versions)) == 24


def test_compaction_keeps_every_row_and_its_order(lake: Lake) -> None:
    for response in ("first", "second", "third"):
        ledger.append(lake, [call(1, response=response)])
    before = LedgerIndex.read(lake)
    ledger.compact(lake)
    assert len(lake.open(CALLS).file_uris()) == 1
    for index in (before, LedgerIndex.read(lake)):  # an index from before still reads the files it knew
        assert index.fetch([key_of(call(1))])[key_of(call(1))]["response"] == "first"


def test_a_compaction_that_fails_is_logged_and_fails_nobody(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    ledger.append(lake, [call(1)])
    ledger.append(lake, [call(2)])
    Path(lake.open(CALLS).file_uris()[0]).unlink()
    ledger.compact(lake)
    assert "was not compacted" in caplog.text
    assert ledger.append(lake, [call(3)]) == lake.version(CALLS)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=40), st.integers(1, 5))
def test_the_index_finds_exactly_what_a_dictionary_would(tmp_path_factory, keys, commits) -> None:  # type: ignore[no-untyped-def]
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    expected: dict[Any, Any] = {}
    for number in range(commits):
        rows = [call(n, r, response=f"{number}.{place}") for place, (n, r) in enumerate(keys[number::commits])]
        for row in rows:
            expected.setdefault(key_of(row), row["response"])
        if rows:
            ledger.append(lake, rows)
    wanted = [key_of(call(n, r)) for n in range(32) for r in range(3)]
    found = LedgerIndex.read(lake).fetch(wanted)
    assert {key: row["response"] for key, row in found.items()} == expected


# The ledger's writer: nothing that was flushed is lost, and a failure reaches everybody.


def test_what_was_handed_over_is_committed_when_flush_returns(lake: Lake) -> None:
    with LedgerWriter(lake) as writer:
        for number in range(10):
            writer.put(call(number))
        writer.flush()
        assert lake.frame(CALLS).collect().height == 10


def test_replies_of_many_threads_land_in_few_commits(lake: Lake) -> None:
    with LedgerWriter(lake) as writer, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: writer.put(call(number)), range(COMMIT_AFTER_ROWS * 2)))
        writer.flush()
        rows = lake.frame(CALLS).collect()
    assert rows["prompt_hash"].n_unique() == COMMIT_AFTER_ROWS * 2
    assert rows["ledger_version"].n_unique() <= 10


def test_replies_are_committed_without_anybody_asking(lake: Lake) -> None:
    writer = LedgerWriter(lake)
    writer.put(call(1))
    with writer._changed:  # the only way to wait for the writer without a sleep
        assert writer._changed.wait_for(lambda: writer._committed == 1, timeout=600)
    assert lake.frame(CALLS).collect().height == 1
    writer.close()


def test_replies_are_committed_in_the_order_they_came(lake: Lake) -> None:
    with LedgerWriter(lake) as writer:
        for number in range(COMMIT_AFTER_ROWS + 1):
            writer.put(call(number))
        writer.flush()
        rows = lake.frame(CALLS).collect()
    first, last = (rows.filter(request=call(n)["request"])["ledger_version"][0] for n in (0, COMMIT_AFTER_ROWS))
    assert first <= last


def test_a_failed_commit_is_raised_to_every_producer(lake: Lake) -> None:
    lake.ensure(CALLS)
    writer = LedgerWriter(lake)
    writer.put(call(1))
    writer.flush()
    shutil.rmtree(Path(lake.uri))
    Path(lake.uri).write_text("a file where the lake was")
    writer.put(call(2))
    with pytest.raises(EvalakeError):
        writer.flush()
    assert writer.failed
    with pytest.raises(EvalakeError):
        writer.put(call(3))


class Panicking(Lake):
    """A lake whose engine panics, which Python is told by something that is no Exception."""

    def ensure(self, contract: Contract) -> Table:
        raise PanicException("broken inside")


def test_a_panic_of_the_engine_is_raised_to_every_producer(tmp_path: Path) -> None:
    writer = LedgerWriter(Panicking(str(tmp_path)))
    writer.put(call(1))
    with pytest.raises(LakeError, match="broken inside"):
        writer.flush()


# A ceiling shared by many holders: together they never pass it, and none of it is lost.

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
