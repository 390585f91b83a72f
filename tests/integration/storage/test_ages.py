"""What time it is for a lake; tests/attacks/test_clocks.py has clocks that are ahead."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalake.storage.lake import Lake
from evalake.storage.maintenance import lake_time, table_time
from tests.integration.storage.rows import TOYS


@pytest.mark.parametrize("folder", ["lake", "l#ke"])  # the engine finds no history in the second
def test_the_newest_commit_tells_the_time(tmp_path: Path, folder: str) -> None:
    lake = Lake(str(tmp_path / folder))
    table = lake.ensure(TOYS)
    before = datetime.now(UTC) - timedelta(minutes=1)
    assert before < table_time(lake, table, TOYS.table) == lake_time(lake, [TOYS]) <= datetime.now(UTC)
    entry = max(Path(lake.location(TOYS)).glob("_delta_log/*.json"))
    for then, told in ((1_600_000_000, 1_600_000_000), (4_000_000_000, None)):
        os.utime(entry, (then, then))
        assert told is None or table_time(lake, table, TOYS.table) == datetime.fromtimestamp(told, UTC)
    assert table_time(lake, table, TOYS.table) <= datetime.now(UTC)
