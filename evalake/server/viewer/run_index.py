"""The index of a run: which samples it consists of and what was decided about each, without any text.

By it items are filtered, sorted and counted; texts are then read for one page, or one item, by key.
"""

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from cachetools import LRUCache

from evalake.admin.prove import ANY_FAILURE
from evalake.contracts.tables import CALL_FAILURES, QUARANTINE, RUN_ITEMS, RUNS, SAMPLES, SNAPSHOTS
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.sdk import Suite
from evalake.server.settings import NotFoundError
from evalake.storage.cached_table import OpenTable
from evalake.storage.forget import refused_rows
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from evalake.tasks.failures import with_failed_calls
from evalake.tasks.runtime.runs import with_state

WORTH_WAITING = 20_000  # items; an index of fewer is read about as fast as the first page alone
MOST_KEPT = 4  # indexes; one of 500,000 answers takes some 60 MB
QUARANTINED = "quarantined"

# What result rows may tell of the call, whichever suite they are of
MEASURES = ("latency_ms", "input_tokens", "output_tokens", "cost_usd", "confidence")

logger = logging.getLogger("evalake.viewer")

# The same names in every answer of a run are kept once.
_NAMES = pl.Categorical


@dataclass(frozen=True)
class RunIndex:
    """Samples in the order of their datasets, and answers, each with the `place` of its sample.

    `samples`: place, sample_hash, dataset, sample_id, category, label. `answers`: place, model, judge, prompt_type,
    replicate, verdict, correct, score, error, the `MEASURES` that the suite has, `flags`, and the hashes of the keys of
    its calls, `asked` and `judged`.
    """

    run: Mapping[str, Any]
    suite: Suite
    samples: pl.DataFrame
    answers: pl.DataFrame
    flags: tuple[str, ...]
    measures: tuple[str, ...]


class RunIndexes:
    """The indexes of the runs that were looked at last; read again where a table that they are made from changed."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._tables: dict[str, OpenTable] = {}
        self._kept: LRUCache[str, tuple[tuple[int, ...], RunIndex]] = LRUCache(MOST_KEPT)
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # one index at a time; those that are kept are given meanwhile
        self._ahead: threading.Thread | None = None

    def of(self, run_id: str) -> RunIndex:
        """Read the index of a run, unless it is kept. Raises NotFoundError where there is no such run."""
        run = find_run(self.lake, run_id)
        if (known := self._known(run)) is not None:
            return known
        with self._reading:
            versions = self._versions(run)
            known = self._known(run)  # another request may have read it by now
            if known is None:
                known = read_index(self.lake, run, find_suite(run["suite"], self.lake))
                with self._lock:
                    self._kept[run_id] = versions, known
            return known

    def beginning(self, run_id: str, count: int) -> RunIndex | None:
        """Read the index of a run's first samples alone; None where that of all is kept, or is read as fast.

        Raises NotFoundError where there is no such run.
        """
        run = find_run(self.lake, run_id)
        if run["items"] < WORTH_WAITING or self._known(run) is not None:
            return None
        return read_index(self.lake, run, find_suite(run["suite"], self.lake), first=count)

    def read_ahead(self, run_id: str) -> None:
        """Read the index of a run in the background, where none is being read."""
        with self._lock:
            if self._ahead is None or not self._ahead.is_alive():
                self._ahead = threading.Thread(target=self._read, args=(run_id,), name="index", daemon=True)
                self._ahead.start()

    def _read(self, run_id: str) -> None:
        try:
            self.of(run_id)
        except ANY_FAILURE as error:  # the next request for the index raises it again
            logger.warning("the items of %s cannot be read: %s", run_id, error)

    def _known(self, run: Mapping[str, Any]) -> RunIndex | None:
        versions = self._versions(run)
        with self._lock:
            known = self._kept.get(run["run_id"])
        return known[1] if known is not None and known[0] == versions else None

    def _versions(self, run: Mapping[str, Any]) -> tuple[int, ...]:
        """Read the versions of the tables that a run's index is made from."""
        results = find_suite(run["suite"], self.lake).results
        inputs = (RUNS, RUN_ITEMS, SAMPLES, results, CALL_FAILURES, QUARANTINE, SNAPSHOTS)
        return tuple(self._tables.setdefault(each.table, OpenTable(self.lake, each)).version() for each in inputs)


def find_run(lake: Lake, run_id: str) -> dict[str, Any]:
    """Find the row of a run. Raises NotFoundError where there is none."""
    rows = with_state(lake, lake.frame(RUNS).filter(pl.col("run_id") == run_id)).collect()
    if rows.is_empty():
        raise NotFoundError("the lake has no such run")
    return rows.row(0, named=True)


def scorer_version(lake: Lake, run: Mapping[str, Any], suite: Suite) -> str:
    """Look up the version of the rules by which the run was measured last; the suite's where it was not yet."""
    if run["snapshot_id"] is None:
        return suite.scoring.version
    versions = lake.frame(SNAPSHOTS).filter(snapshot_id=run["snapshot_id"]).select("scorer_version").collect()
    return suite.scoring.version if versions.is_empty() else str(versions.item())


def count_samples(lake: Lake, run: Mapping[str, Any]) -> int:
    """Count the samples of a run."""
    return int(_samples(lake, run).select(pl.col("sample_hash").n_unique()).collect().item())


def read_index(lake: Lake, run: Mapping[str, Any], suite: Suite, first: int | None = None) -> RunIndex:
    """Read the index of a run from the tables as they are now: of all of its samples, or only of the `first` ones."""
    samples = _samples(lake, run).sort("dataset", "position")
    if first is not None:
        samples = samples.filter(pl.col("position") < first).head(first)  # positions count from 0 in each dataset
    samples = samples.unique("sample_hash", keep="first", maintain_order=True).with_row_index("place")
    columns = ("place", "sample_hash", "dataset", "sample_id", "category", "label")
    known = samples.select(columns).collect()
    wanted = pl.lit(True) if first is None else pl.col("sample_hash").is_in(known["sample_hash"].to_list())
    items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run["run_id"], wanted)
    measures = tuple(name for name in MEASURES if name in suite.results.column)
    flags = (*suite.presentation.viewing.flags, QUARANTINED)
    answers = (
        items.select(*ITEM_KEY, "prompt_type")
        .join(_decided(lake, run, suite, measures).filter(wanted), on=ITEM_KEY, how="left", nulls_equal=True)
        .join(known.lazy().select("place", "sample_hash"), on="sample_hash")
        .pipe(partial(with_failed_calls, lake, run["run_id"]))
        .with_columns(error=pl.coalesce("error", pl.when(pl.col("verdict").is_null()).then("given_up")))
        .pipe(_with_quarantined, lake, run, suite)
        .select(
            "place",
            pl.col("model", "judge", "prompt_type", "verdict", "error").cast(_NAMES),
            "replicate",
            "correct",
            "score",
            *measures,
            *flags,
            pl.col("prompt_hash").hash().alias("asked"),
            pl.col("judge_hash").hash().alias("judged"),
        )
        .collect()
    )
    order = [pl.col(name).cast(pl.String) for name in ("model", "prompt_type", "judge")]
    return RunIndex(run, suite, known, answers.sort("place", *order, "replicate"), flags, measures)


def _samples(lake: Lake, run: Mapping[str, Any]) -> pl.LazyFrame:
    versions = list(json.loads(run["dataset_versions"]).values())
    return lake.frame(SAMPLES).filter(pl.col("dataset_version").is_in(versions))


def _decided(lake: Lake, run: Mapping[str, Any], suite: Suite, measures: tuple[str, ...]) -> pl.LazyFrame:
    """Select what the run's result rows decided, by the key of their items."""
    viewing = suite.presentation.viewing
    rows = lake.frame(suite.results).filter(
        pl.col("model").is_in(list(run["models"])), pl.col("scorer_version") == scorer_version(lake, run, suite)
    )
    for name in {"judge", "judge_hash", "judge_endpoint"} - suite.results.column.keys():
        rows = rows.with_columns(pl.lit(None, pl.String).alias(name))  # judged by rules, or by the first call
    return rows.select(
        *ITEM_KEY,
        _or_null(viewing.verdict, pl.String).alias("verdict"),
        _or_null(viewing.correct, pl.Boolean).alias("correct"),
        _or_null(viewing.score, pl.Float64).alias("score"),
        _or_null(viewing.error, pl.String).alias("error"),
        *measures,
        *(expression.fill_null(False).alias(name) for name, expression in viewing.flags.items()),
    ).unique(ITEM_KEY)


def _or_null(expression: pl.Expr | None, kind: Any) -> pl.Expr:
    return pl.lit(None, kind) if expression is None else expression.cast(kind)


def _with_quarantined(answers: pl.LazyFrame, lake: Lake, run: Mapping[str, Any], suite: Suite) -> pl.LazyFrame:
    """Add to answers whether a row of theirs was refused by its contract."""
    refused = refused_rows(lake, run["run_id"], suite.contracts)
    rows = [(row["sample_hash"], row.get("model"), True) for row in refused]
    schema = {"sample_hash": pl.String, "model": pl.String, QUARANTINED: pl.Boolean}
    details = pl.LazyFrame(rows, schema=schema, orient="row", strict=False).unique()
    return answers.join(details, on=["sample_hash", "model"], how="left").with_columns(
        pl.col(QUARANTINED).fill_null(False)
    )
