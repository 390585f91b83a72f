"""Many processes at once on one lake: every row lands exactly once, the first reply of a key is the reply."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CALLS
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import TOYS, call, toy
from tests.processes import process_context

pytestmark = pytest.mark.e2e

PROCESSES, BATCHES, SIZE = 4, 8, 20


def _land(lake: Lake, number: int) -> int:
    """Land batches, each of which overlaps with one of the process before and one of the process after."""
    first = number * BATCHES * SIZE // 2
    landed = 0
    for start in range(first, first + BATCHES * SIZE, SIZE):
        rows = [toy(f"k{n}", model=f"m{n % 2}") for n in range(start, start + SIZE)]
        landed += land(lake, TOYS, pl.DataFrame(rows)).inserted
        ledger.append(lake, [call(n, response=f"{number}") for n in range(start, start + SIZE)])
    return landed


def test_processes_at_once_land_every_row_exactly_once(tmp_path: Path) -> None:
    """tests/e2e/chaos has eight writers of a bucket that fails."""
    lake = Lake(str(tmp_path / "lake"))
    with ProcessPoolExecutor(PROCESSES, mp_context=process_context()) as pool:
        work = [pool.submit(_land, lake, number) for number in range(PROCESSES)]
        maintain(lake, [TOYS, CALLS])  # in the middle of it all
        inserted = sum(done.result() for done in work)
    distinct = (PROCESSES + 1) * BATCHES * SIZE // 2
    keys = lake.frame(TOYS).collect()["key"]
    assert keys.len() == keys.n_unique() == inserted == distinct
    rows = lake.frame(CALLS).collect()
    first = rows.group_by(ledger.KEY).agg(pl.col("response").sort_by("ledger_version").first())
    kept = ledger.replies(rows.lazy()).select(*ledger.KEY, "response").collect()
    assert kept.sort("prompt_hash").equals(first.sort("prompt_hash"))
    assert kept.height == distinct
    maintain(lake, [TOYS, CALLS])
    assert lake.frame(CALLS).collect().height == distinct
