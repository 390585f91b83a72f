"""The inventory: which tables a lake has, how large they are, and when they last changed."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import polars as pl

from contracts.contract import Contract
from storage.lake import Lake

SCHEMA: dict[str, pl.DataType] = {
    "table": pl.String(),
    "rows": pl.Int64(),
    "version": pl.Int64(),
    "files": pl.Int64(),
    "bytes": pl.Int64(),
    "changed_at": pl.Datetime("us", "UTC"),
    "description": pl.String(),
}


def inventory(lake: Lake, contracts: Sequence[Contract]) -> pl.DataFrame:
    """List the tables that exist, one row each, the most recently changed first."""
    with ThreadPoolExecutor() as threads:  # most of it is waiting for files
        rows = [row for row in threads.map(lambda contract: _row(lake, contract), contracts) if row is not None]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("changed_at", descending=True, nulls_last=True)


def _row(lake: Lake, contract: Contract) -> dict[str, Any] | None:
    table = lake.find(contract.table)
    if table is None:
        return None
    files = pl.DataFrame(table.get_add_actions(flatten=True))
    last = table.history(1)  # the engine finds none in a folder with `#` in its path
    return {
        "table": contract.table,
        "rows": table.count(),
        "version": table.version(),
        "files": files.height,
        "bytes": int(files["size_bytes"].sum()) if files.height else 0,
        "changed_at": datetime.fromtimestamp(last[0]["timestamp"] / 1000, UTC) if last else None,
        "description": contract.description,
    }
