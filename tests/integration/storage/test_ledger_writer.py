"""The ledger's writer: nothing that was flushed is lost, and a failure reaches everybody."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from polars.exceptions import PanicException

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS
from evalake.core.errors import EvalakeError, LakeError
from evalake.storage.lake import Lake, Table
from evalake.storage.ledger import COMMIT_AFTER_ROWS, LedgerWriter
from tests.integration.storage.rows import call


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
        assert writer._changed.wait_for(lambda: writer._committed == 1, timeout=30)
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
