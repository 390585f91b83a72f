"""The inventory: which tables a lake has, how large they are, the one that changed last first."""

from datetime import UTC, datetime, timedelta

from evalake.contracts.tables import CALLS, RUNS
from evalake.storage.cached_table import inventory
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, toy
from tests.integration.storage.test_landing import frame


def test_tables_that_are_there_come_with_their_size_and_the_newest_first(lake: Lake) -> None:
    lake.ensure(CALLS)
    land(lake, TOYS, frame(toy("a"), toy("b")))
    land(lake, TOYS, frame(toy("c", model="n")))
    toys, calls = inventory(lake, [CALLS, RUNS, TOYS]).to_dicts()
    assert (toys["table"], toys["rows"], toys["files"], toys["description"]) == ("toys", 3, 2, "A table for tests.")
    assert toys["version"] == lake.open(TOYS).version()
    assert toys["bytes"] > 0
    assert (calls["table"], calls["rows"], calls["files"], calls["bytes"]) == ("calls", 0, 0, 0)
    assert datetime.now(UTC) - toys["changed_at"] < timedelta(hours=1)
