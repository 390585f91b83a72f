"""Queries that the engine answers in this process: locked as in its own, without the second that each of those takes.

What the operating system adds, test_process.py and test_main.py hold against the process of a query.
"""

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from unittest.mock import patch

import polars as pl

from evalake.contracts.contract import Contract
from evalake.storage.lake import Lake
from evalake.storage.sql import process
from evalake.storage.sql.query import Request, Result
from evalake.storage.sql.start import LIMITS, Deadline, Limits
from evalake.storage.sql.views import views


def answered(
    lake: Lake,
    contracts: Sequence[Contract],
    sql: str,
    *,
    versions: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Answer a query as `query` does; this process is not confined."""
    out = BytesIO()
    with patch.object(process, "_confine"), redirect_stdout(TextIOWrapper(out, write_through=True)) as text:
        process._answer(Request(lake, tuple(contracts), dict(versions or {}), views(contracts), sql, limits))
        text.detach()
    out.seek(0)
    return Result(out, Deadline(limits)).frame()
