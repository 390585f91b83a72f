"""The key index is always right, whatever was done to the ledger since it was made, and costs little to keep up."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.tables import CALLS, CORE_CONTRACTS
from storage import ledger
from storage.forget import erase
from storage.key_index import keys as keys_module
from storage.key_index.cache import Cache, folder_of
from storage.lake import Lake
from storage.ledger import KEY, LedgerIndex
from storage.maintenance import maintain
from tests.storage.rows import call, key_of

pytestmark = pytest.mark.slow

NUMBERS = range(30)
STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.tuples(st.sampled_from(NUMBERS), st.integers(0, 1)), min_size=1)),
    st.tuples(st.sampled_from(["read", "compact", "maintain", "back up", "restore"]), st.none()),
    st.tuples(st.just("forget"), st.sampled_from(NUMBERS)),
)


class World:
    """A lake that things are done to, and a backup of it."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder / "lake"))
        self.backup = folder / "backup"
        self.lake.ensure(CALLS)
        self.appended = 0

    def take(self, step: str, of: object) -> None:
        """Do one thing."""
        if step == "append":
            assert isinstance(of, list)
            ledger.append(self.lake, [call(*each, response=f"{self.appended}.{n}") for n, each in enumerate(of)])
            self.appended += 1
        elif step == "read":
            LedgerIndex.read(self.lake)
        elif step == "compact":
            ledger.compact(self.lake)
        elif step == "maintain":
            maintain(self.lake, CORE_CONTRACTS, retention_hours=0)
        elif step == "forget":
            erase(self.lake, CALLS.table, "prompt_hash", [call(int(str(of)))["prompt_hash"]])
        elif step == "back up":
            shutil.rmtree(self.backup, ignore_errors=True)
            shutil.copytree(self.lake.uri, self.backup)
        elif self.backup.exists():
            shutil.rmtree(self.lake.uri)
            shutil.copytree(self.backup, self.lake.uri)

    def check(self) -> None:
        """Hold the index to what is in the ledger."""
        rows = self.lake.frame(CALLS).collect().sort("ledger_version").rows(named=True)
        replies = {key_of(row): row["response"] for row in reversed(rows)}
        index = LedgerIndex.read(self.lake)
        found = index.fetch([key_of(call(number, replicate)) for number in range(31) for replicate in range(3)])
        assert {key: row["response"] for key, row in found.items()} == replies
        first = {key_of(row): row["ledger_version"] for row in reversed(rows)}
        late = [row for row in rows if row["ledger_version"] > first[key_of(row)]]
        assert sorted(index.superseded() or []) == sorted((*key_of(row), row["ledger_version"]) for row in late)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_it_finds_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]
) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    for step, of in steps:
        world.take(step, of)
        if step == "read":
            world.check()
    world.check()


def test_what_came_since_is_found_beside_what_is_kept(lake: Lake) -> None:
    ledger.append(lake, [call(number) for number in range(10)])
    first = LedgerIndex.read(lake)
    ledger.append(lake, [call(number) for number in (10, 3)])
    assert LedgerIndex.read(lake).fetch([key_of(call(10))])
    extended = first.extended(lake.open(CALLS))
    assert len(extended.files) == 2
    assert all(extended.known([key_of(call(number))]) for number in range(11))
    assert not extended.known([key_of(call(11))])
    assert extended.fetch([key_of(call(3))]) == LedgerIndex.read(lake).fetch([key_of(call(3))])
    assert extended.extended(lake.open(CALLS)) is extended


def test_of_what_came_since_the_runs_own_reply_is_taken_where_that_is_asked_for(lake: Lake) -> None:
    ledger.append(lake, [call(1, run_id="another", response="first")])
    index = LedgerIndex.read(lake)
    ledger.append(lake, [call(1, run_id="own", response="second")])
    key = key_of(call(1))
    assert index.extended(lake.open(CALLS)).fetch([key])[key]["response"] == "first"
    assert index.extended(lake.open(CALLS)).fetch([key], run_id="own")[key]["response"] == "second"


def test_an_index_that_is_extended_with_every_commit_keeps_few_segments(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.key_index.keys.PORTION", 1000)
    index = LedgerIndex.read(lake)
    for batch in range(64):
        ledger.append(lake, [call(batch * 10 + number) for number in range(10)])
        index = index.extended(lake.open(CALLS))
        assert len(index.keys.segments) <= 7  # log2 of 64, and one
    keys = [key_of(call(number)) for number in range(640)]
    assert index.fetch(keys) == LedgerIndex.read(lake).fetch(keys)


def test_segments_stay_few_and_rows_are_seldom_written_anew(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = Cache.write
    monkeypatch.setattr(Cache, "write", lambda *args: (written.append(sum(s.rows for s in args[1])), write(*args))[1])
    batches, rows = 64, 10
    for batch in range(batches):
        ledger.append(lake, [call(batch * rows + number) for number in range(rows)])
        LedgerIndex.read(lake)
        assert len(list(folder_of(lake.uri).glob("*.keys"))) <= 7  # log2 of 64, and one
    assert sum(written) <= batches * rows * 8  # once when it came, and when its segment doubled


def test_a_compacted_ledger_is_kept_without_its_old_files(lake: Lake) -> None:
    for number in range(12):
        ledger.append(lake, [call(number)])
    LedgerIndex.read(lake)
    ledger.compact(lake)
    LedgerIndex.read(lake)
    cache = Cache.of(lake.uri, str(lake.open(CALLS).metadata().id))
    assert cache is not None
    (kept,) = cache.listed().segments
    assert [file for file in kept.files if file] == [uri.rpartition("/")[2] for uri in lake.open(CALLS).file_uris()]


def test_very_many_keys_that_stand_twice_are_not_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.key_index.cache.MOST_REPEATED", 5)
    monkeypatch.setattr(keys_module, "MOST_REPEATED", 5)
    for _ in range(2):
        ledger.append(lake, [call(number) for number in range(20)])
    assert LedgerIndex.read(lake).superseded() is None
    maintain(lake, CORE_CONTRACTS)
    assert LedgerIndex.read(lake).superseded() == []
    assert lake.frame(CALLS).select(KEY).collect().height == 20
