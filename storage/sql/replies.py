"""The view `replies` of a large ledger: which rows it leaves out is told by the key index, not by the query.

The query's process reads nothing beside the lake, so this is found out before, of the version that it then reads.
"""

import re
from collections.abc import Iterable, Mapping

import polars as pl
from deltalake.exceptions import DeltaError

from contracts.tables import CALLS
from core.errors import EvalakeError
from storage.key_index.keys import is_worth_keeping
from storage.lake import Lake
from storage.ledger import LedgerIndex
from storage.sql.views import REPLIES, View, replies_without


def known_replies(lake: Lake, sql: str, views: Iterable[View], versions: Mapping[str, int]) -> tuple[View, int] | None:
    """Build the view as a scan; None where the query does not name it, or must itself find what to leave out.

    With it stands the version of the ledger that it is of. The query must where the ledger is small, where it was asked
    for at a version, and where the index cannot tell.
    """
    names = [view.name for view in views if view.name == REPLIES.name or re.search(rf"\b{REPLIES.name}\b", view.sql)]
    if CALLS.table in versions or not any(re.search(rf"\b{name}\b", sql, re.IGNORECASE) for name in names):
        return None
    try:
        table = lake.find(CALLS.table)
        if table is None or not is_worth_keeping(table):
            return None
        superseded = LedgerIndex.of(lake, table).superseded()
    except (EvalakeError, DeltaError, pl.exceptions.PolarsError, OSError):
        return None  # the query will report what is wrong with the table
    return None if superseded is None else (replies_without(superseded), table.version())
