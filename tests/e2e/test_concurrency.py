"""Many processes at once on one lake: every row lands exactly once, the first reply of a key is the reply."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CALLS
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.maintenance import maintain
from tests.e2e.buckets import bucket_of
from tests.integration.storage.rows import TOYS, call, toy
from tests.processes import process_context

pytestmark = pytest.mark.e2e

PROCESSES = 8


def _land(lake: Lake, number: int, batches: int, size: int) -> int:
    """Land batches, each of which overlaps with one of the process before and one of the process after."""
    first = number * batches * size // 2
    landed = 0
    for start in range(first, first + batches * size, size):
        rows = [toy(f"k{n}", model=f"m{n % 2}") for n in range(start, start + size)]
        landed += land(lake, TOYS, pl.DataFrame(rows)).inserted
        ledger.append(lake, [call(n, response=f"{number}") for n in range(start, start + size)])
    return landed


@pytest.fixture
def folder(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Lake]:
    with bucket_of(tmp_path) as running:
        yield Lake("s3://lake/concurrent", running.options)


@pytest.mark.parametrize(("place", "batches", "size"), [("folder", 8, 20), ("bucket", 1, 10)])
def test_eight_processes_land_every_row_exactly_once(
    request: pytest.FixtureRequest, place: str, batches: int, size: int
) -> None:
    lake: Lake = request.getfixturevalue(place)
    with ProcessPoolExecutor(PROCESSES, mp_context=process_context()) as pool:
        work = [pool.submit(_land, lake, number, batches, size) for number in range(PROCESSES)]
        maintain(lake, [TOYS, CALLS])  # in the middle of it all
        inserted = sum(done.result() for done in work)
    distinct = (PROCESSES + 1) * batches * size // 2
    keys = lake.frame(TOYS).collect()["key"]
    assert keys.len() == keys.n_unique() == inserted == distinct
    rows = lake.frame(CALLS).collect()
    first = rows.group_by(ledger.KEY).agg(pl.col("response").sort_by("ledger_version").first())
    kept = ledger.replies(rows.lazy()).select(*ledger.KEY, "response").collect()
    assert kept.sort("prompt_hash").equals(first.sort("prompt_hash"))
    assert kept.height == distinct
    maintain(lake, [TOYS, CALLS])
    assert lake.frame(CALLS).collect().height == distinct
