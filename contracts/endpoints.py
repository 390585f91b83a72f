"""How rows from before the column `endpoint` get one: by a change of each table that names calls."""

import polars as pl

from contracts.changes import Rewritten
from core.endpoints import UNKNOWN


def _with_endpoint(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.with_columns(endpoint=pl.lit(UNKNOWN), reply_revision=pl.lit(0, pl.Int64))


def _with_endpoints(rows: pl.LazyFrame) -> pl.LazyFrame:
    rows = _with_endpoint(rows)
    return rows.with_columns(judge_endpoint=pl.lit(UNKNOWN)) if "judge_hash" in rows.collect_schema() else rows


def _with_endpoints_of_items(rows: pl.LazyFrame) -> pl.LazyFrame:
    judged = pl.when(pl.col("judge_hash").is_not_null()).then(pl.lit(UNKNOWN))
    return rows.with_columns(endpoint=pl.lit(UNKNOWN), judge_endpoint=judged)


_WORDS = f"names the endpoint that answered ({UNKNOWN} for rows from before)"
ENDPOINT_OF_CALLS = Rewritten(f"{_WORDS}, and the revision of a reply (0)", _with_endpoint)
ENDPOINTS_OF_RESULTS = Rewritten(f"{_WORDS}, and the revision of the replies (0)", _with_endpoints)
ENDPOINTS_OF_ITEMS = Rewritten(_WORDS, _with_endpoints_of_items)
