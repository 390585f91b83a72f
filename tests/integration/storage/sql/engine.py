"""Answers a query in the test's process: DuckDB is locked as in the query's own, without the second that one takes.

What the operating system adds, test_process.py and test_main.py hold against the process of a query.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import polars as pl

from evalake.contracts.contract import Contract
from evalake.storage.lake import Lake
from evalake.storage.sql.process import answer_request
from evalake.storage.sql.query import Result, to_request
from evalake.storage.sql.start import Deadline


def answered(lake: Lake, contracts: Sequence[Contract], sql: str, **options: Any) -> pl.DataFrame:
    """Answer a query as `query` does, with the same options; this process is not confined."""
    request, out = to_request(lake, contracts, sql, **options), BytesIO()
    answer_request(request, out, confine=lambda limits: None)
    out.seek(0)
    return Result(out, Deadline(request.limits)).frame()
