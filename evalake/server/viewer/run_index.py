"""The index of a run: which samples it consists of and what was decided about each, without any text.

By it items are filtered, sorted and counted; texts are then read for one page, or one item, by key.
"""

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl
from cachetools import LRUCache

from evalake.admin.prove import ANY_FAILURE
from evalake.contracts.tables import CALL_FAILURES, CALLS, QUARANTINE, RUN_ITEMS, RUNS, SAMPLES, SNAPSHOTS
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.sdk import Suite
from evalake.sdk.json_in_text import split_thinking
from evalake.server.settings import NotFoundError
from evalake.storage.cached_table import OpenTable
from evalake.storage.forget import refused_rows
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from evalake.tasks.failures import ASKED, with_failed_calls
from evalake.tasks.runtime.runs import as_scored, under_its_criteria, with_state

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
        """Read the index of a run, unless it is kept. Raises NotFoundError where there is no such run.

        The run's own row is always as of now: its state follows from the clock and from batch jobs, too.
        """
        run = find_run(self.lake, run_id)
        if (known := self._known(run)) is not None:
            return replace(known, run=run)
        with self._reading:
            versions = self._versions(run)
            known = self._known(run)  # another request may have read it by now
            if known is None:
                known = read_index(self.lake, run, find_suite(run["suite"], self.lake))
                with self._lock:
                    self._kept[run_id] = versions, known
            return replace(known, run=run)

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
        raise NotFoundError(f"the lake has no run {run_id}: the page Runs lists all")
    return rows.row(0, named=True)


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
        pl.col("model").is_in(list(run["models"])),
        pl.col("scorer_version") == as_scored(lake, run).scoring.version,
        under_its_criteria(lake, suite, run["run_id"]),
    )
    for name in {"judge", "judge_hash", "judge_endpoint"} - suite.results.column.keys():
        rows = rows.with_columns(pl.lit(None, pl.String).alias(name))  # judged by rules, or by the first call
    return rows.select(
        *ITEM_KEY,
        *measures,
        **viewing.told,
        **{name: expression.fill_null(False) for name, expression in viewing.flags.items()},
    ).unique(ITEM_KEY)


def _with_quarantined(answers: pl.LazyFrame, lake: Lake, run: Mapping[str, Any], suite: Suite) -> pl.LazyFrame:
    """Add to answers whether a row of theirs was refused by its contract."""
    refused = refused_rows(lake, run["run_id"], suite.contracts)
    key = {"model": pl.String, **ASKED}
    rows = [{name: row.get(name) for name in key} for row in refused]
    details = pl.LazyFrame(rows, schema=key, strict=False).unique().with_columns(pl.lit(True).alias(QUARANTINED))
    joined = answers.join(details, on=list(key), how="left", nulls_equal=True)
    return joined.with_columns(pl.col(QUARANTINED).fill_null(False))


# Texts of items, read by key for one page: the beginnings of inputs and replies, and whole ones for a file.


PREVIEW = 240  # characters of an input, or of a reply, that a list shows
MOST_NEAR = 50  # samples like another
_NEAR = 0.1  # of their words are common at least
_COMPARED = 4000  # characters of an input that are compared
_WITH_THINKING = 20_000  # characters of a reply in which the end of its thinking is looked for


def beginnings(lake: Lake, index: RunIndex, hashes: Sequence[str]) -> dict[str, str]:
    """Read the beginnings of samples' inputs, or the few words in which their suite describes them, by sample hash."""
    brief = index.suite.presentation.viewing.input_brief
    text = pl.col("input") if brief else pl.col("input").str.head(PREVIEW)
    rows = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, pl.col("sample_hash").is_in(list(hashes)))
    texts = rows.select("sample_hash", text).unique("sample_hash").collect().iter_rows()
    return {sample_hash: brief(kept)[:PREVIEW] if brief else kept for sample_hash, kept in texts}


def nearest(lake: Lake, index: RunIndex, sample_hash: str) -> dict[str, float]:
    """Find the samples whose inputs share most words with one's, itself first: the shares by sample hash."""
    words = pl.col("input").str.head(_COMPARED).str.to_lowercase().str.extract_all(r"\w+").list.unique()
    datasets = pl.col("dataset").is_in(index.samples["dataset"].unique().to_list())
    rows = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, datasets)
    texts = rows.select("sample_hash", words=words).unique("sample_hash").collect()
    texts = texts.join(index.samples, on="sample_hash", how="semi")
    its = texts.filter(sample_hash=sample_hash).rename({"words": "its"}).select("its")
    if its.is_empty():
        return {}
    both, either = pl.col("words").list.set_intersection("its"), pl.col("words").list.set_union("its")
    shared = texts.join(its, how="cross").select("sample_hash", share=both.list.len() / either.list.len())
    found = shared.filter((pl.col("share") >= _NEAR) | (pl.col("sample_hash") == sample_hash))
    ranked = found.sort(pl.col("sample_hash") != sample_hash, -pl.col("share"), "sample_hash").head(MOST_NEAR)
    return dict(ranked.iter_rows())


def beginnings_of_replies(lake: Lake, index: RunIndex, hashes: Sequence[str]) -> dict[tuple[str, int, int], str]:
    """Read the beginnings of replies, without their thinking, by sample hash, hash of the request's key, replicate."""
    rows = replies(lake, index, hashes, _WITH_THINKING)
    keys = rows.select("sample_hash", "asked", "replicate").iter_rows()
    return {key: split_thinking(text)[0].strip()[:PREVIEW] for key, text in zip(keys, rows["response"], strict=True)}


def replies(lake: Lake, index: RunIndex, hashes: Sequence[str], most: int | None = None) -> pl.DataFrame:
    """Read the replies to samples, each once: sample_hash, asked, replicate, response; those without text are left out.

    `asked` is the hash of the request's key, as the index has it; `most` are the characters that are read of each.
    """
    text = pl.col("response") if most is None else pl.col("response").str.head(most)
    items = lake.frame(RUN_ITEMS).filter(
        pl.col("run_id") == index.run["run_id"], pl.col("sample_hash").is_in(list(hashes))
    )
    keys = items.select("sample_hash", *CALL_KEY).unique().collect()
    models = [*index.run["models"], *index.run["judges"]]
    wanted = pl.col("model").is_in(models), pl.col("prompt_hash").is_in(keys["prompt_hash"].unique().to_list())
    calls = lake.frame(CALLS).filter(*wanted)
    newest = calls.sort(-pl.col("reply_revision"), "ledger_version", "answered_at").unique(
        list(CALL_KEY), keep="first", maintain_order=True
    )
    found = newest.select(*CALL_KEY, text).drop_nulls("response").collect()
    return (
        keys.join(found, on=list(CALL_KEY))
        .select("sample_hash", pl.col("prompt_hash").hash().alias("asked"), "replicate", "response")
        .unique(["sample_hash", "asked", "replicate"])
    )
