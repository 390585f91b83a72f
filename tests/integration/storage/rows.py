"""Rows for the storage tests."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.contract import Contract, RowModel
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import Kind, Rule
from evalake.contracts.tables import CALLS, RUNS
from evalake.core.configuration import PROVIDER
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import key_of as key_of
from evalake.storage.snapshots import Snapshot, land_snapshot


class ToyRow(RowModel):
    """A row small enough to reason about."""

    key: str = Field(description="The key.")
    model: str = Field(description="The partition.")
    state: Literal["early", "final"] = Field(description="Whether a later row may replace this one.")
    size: float | None = Field(description="Never negative.")


TOYS = Contract(
    "toys",
    ToyRow,
    ("key",),
    "A table for tests.",
    (Rule("size_not_negative", "size", Kind.BETWEEN, {"minimum": 0, "maximum": None}),),
    partition_by=("model",),
    replaced_when="old.state = 'early' AND new.state = 'final'",
)


def toy(key: str, model: str = "m", state: str = "final", size: float | None = 1.0) -> dict[str, Any]:
    """One row of TOYS."""
    return {"key": key, "model": model, "state": state, "size": size}


def call(
    number: int,
    replicate: int = 0,
    response: str = "yes",
    run_id: str = "run",
    endpoint: str = PROVIDER,
    revision: int = 0,
) -> dict[str, Any]:
    """One row of the ledger without its version; the request is told apart by `number`."""
    request = json.dumps({"question": number}, separators=(",", ":"))
    return {
        **dict.fromkeys(CALLS.column.keys() - {"ledger_version"}),
        "prompt_hash": hashlib.sha256(request.encode()).hexdigest(),
        "replicate": replicate,
        "model": "provider/model",
        "request": request,
        "response": response,
        "finish_reason": "stop",
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": 0.5,
        "latency_ms": 12.0,
        "attempts": 1,
        "origin": "call",
        "run_id": run_id,
        "answered_at": datetime(2026, 1, 1, tzinfo=UTC),
        "queue_ms": 0.5,
        "waited_ms": 0.0,
        "connect_ms": 0.0,
        "first_byte_ms": 11.0,
        "concurrency": 3,
        "endpoint": endpoint,
        "reply_revision": revision,
    }


def run(run_id: str, suite: str, when: datetime) -> dict[str, Any]:
    """One row of RUNS, of a run that began and ended at one moment and made no call."""
    counts = ("samples", "items", "calls_made", "calls_from_ledger", "calls_failed", "rows_landed")
    more = ("rows_already_present", "rows_quarantined", "input_tokens", "output_tokens", "items_done")
    return {
        **dict.fromkeys(RUNS.column),
        **dict.fromkeys((*counts, *more), 0),
        **dict.fromkeys(("cost_usd", "cost_usd_avoided"), 0.0),
        **dict.fromkeys(("parameters", "dataset_versions"), "{}"),
        "run_id": run_id,
        "suite": suite,
        "origin": "run",
        "state": "completed",
        "models": ["provider/model"],
        "judges": [],
        "code_version": "1",
        "started_at": when,
        "alive_at": when,
        "ended_at": when,
    }


def day(number: int) -> datetime:
    return datetime(2026, 11, number, tzinfo=UTC)


def measured(lake: Lake, run_id: str, judge: str, when: datetime, value: float | None, **of_run: str) -> None:
    """A run and its snapshot with one value, by one judge."""
    land(lake, RUNS, conform([run(run_id, "s", when) | of_run], RUNS))
    snapshot_of(lake, run_id, {judge: value})


def snapshot_of(lake: Lake, run_id: str, values: Mapping[str, float | None]) -> None:
    """A run's snapshot with one value by each judge."""
    name = {"model": "m", "slice": "all", "slice_value": "", "metric": "rate", "tier": None}
    counts = {"n": 1, "units": 1, "n_eff": 1.0, **dict.fromkeys(("se", "ci_low", "ci_high")), "reliable": False}
    snapshot = Snapshot(run_id, "s", {}, "0" * 64, "1", 1, {"judge": "+".join(values)}, "1")
    frame = pl.DataFrame(
        [{**name, "judge": judge, "value": value, **counts} for judge, value in values.items()],
        schema_overrides=dict.fromkeys(("value", "se", "ci_low", "ci_high"), pl.Float64),
    )
    land_snapshot(lake, snapshot, frame.with_columns(pl.col("tier").cast(pl.Int64)))
