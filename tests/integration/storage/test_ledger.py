"""The ledger: the first committed reply of a key is the reply, for ever."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.contracts.tables import CALLS
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerIndex
from tests.integration.storage.rows import call, key_of


def test_what_is_appended_is_found_again(lake: Lake) -> None:
    rows = [call(1), call(2), call(2, replicate=1)]
    ledger.append(lake, rows)
    found = LedgerIndex.read(lake).fetch([*map(key_of, rows), key_of(call(3)), key_of(call(1, replicate=1))])
    assert {key: row["response"] for key, row in found.items()} == {key_of(row): "yes" for row in rows}
    assert found[key_of(rows[0])]["cost_usd"] == 0.5


def test_an_empty_ledger_knows_nothing(lake: Lake) -> None:
    index = LedgerIndex.read(lake)
    assert index.fetch([key_of(call(1))]) == {}
    assert not index.known([key_of(call(1))])


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
