"""Refused: the rows of a run that are in quarantine, as far as they could be read."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from contracts.contract import Contract
from contracts.tables import QUARANTINE
from storage.lake import Lake


def refused_rows(lake: Lake, run_id: str, contracts: Sequence[Contract]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run that these tables refused; recorded lines that could not be read are left out."""
    tables = [contract.table for contract in contracts]
    refused = lake.frame(QUARANTINE).filter(pl.col("run_id") == run_id, pl.col("table_name").is_in(tables))
    for payload in refused.select("payload").collect()["payload"]:
        try:
            row = json.loads(payload)
        except ValueError:
            continue
        if isinstance(row, dict) and "sample_hash" in row:
            yield row
