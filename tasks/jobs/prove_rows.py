"""Prove rows: hold the rows of data files to the row rules of their table, by two engines, on all cores.

Great Expectations is pandas and Python, so that threads would wait for each other: it runs in processes, where there is
enough to do.
"""

import multiprocessing
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from itertools import repeat
from types import TracebackType

import polars as pl
from polars.exceptions import PanicException

from contracts.audit import kept_rules
from contracts.compile.great_expectations import validate
from contracts.contract import Contract
from contracts.tables import CALLS
from core.errors import EvalakeError, LakeError
from storage.integrity import false_requests
from storage.lake import FILE, Lake, first_words
from storage.portions import portions
from tasks.runtime.beside import end_with_parent

# Damaged files make engines fail in every way there is, up to a panic of Polars, which is no Exception.
ANY_FAILURE = (Exception, PanicException)

CHUNK_ROWS = 50_000  # that a process holds at a time
PIECE_BYTES = 16 * 2**20  # of files that a process is given at a time
WORTH_PROCESSES = 4 * 2**20  # bytes of files; with fewer, importing Great Expectations again takes longer than they do


class CheckEndedError(EvalakeError):
    """A process of the check was ended from outside; that says nothing of the lake."""


@dataclass(frozen=True)
class Held:
    """What came of holding rows to their rules.

    `rows` has how many rows each file has, `failed` how many rows broke each rule, by engine, and `broken` the files
    that have a row which broke one by either. `false_requests` counts calls whose request is not the one of their hash.
    """

    rows: Counter[str] = field(default_factory=Counter)
    failed: Mapping[str, Counter[str]] = field(
        default_factory=lambda: {"polars": Counter(), "great_expectations": Counter()}
    )
    broken: frozenset[str] = frozenset()
    false_requests: int = 0

    def __add__(self, other: "Held") -> "Held":
        failed = {engine: counts + other.failed[engine] for engine, counts in self.failed.items()}
        broken, requests = self.broken | other.broken, self.false_requests + other.false_requests
        return Held(self.rows + other.rows, failed, broken, requests)


class Holders(AbstractContextManager["Holders"]):
    """Holds rows to their rules, in as many processes as there are cores where the files to come are large enough."""

    def __init__(self, to_come: int) -> None:
        """Take the size in bytes of all the files to come. Processes start with the first file."""
        self._pool = None
        if to_come >= WORTH_PROCESSES:
            context = multiprocessing.get_context("spawn")  # a fork would copy locks that engines' threads hold
            self._pool = ProcessPoolExecutor(os.cpu_count() or 1, context, end_with_parent)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def hold(self, lake: Lake, contract: Contract, sizes: Mapping[str, int]) -> Held:
        """Hold the rows of these files, given with their sizes, to the row rules of the table.

        Raises LakeError where they cannot be read, and CheckEndedError where a process was ended from outside.
        """
        pieces = repeat(lake), repeat(contract), portions(sizes, PIECE_BYTES)
        try:
            held = map(hold, *pieces) if self._pool is None else self._pool.map(hold, *pieces)
            return reduce(Held.__add__, held, Held())
        except BrokenProcessPool as error:
            raise CheckEndedError(
                "a process of the check was ended from outside, as where memory is short: check again"
            ) from error


def hold(lake: Lake, contract: Contract, paths: Sequence[str]) -> Held:
    """Hold the rows of files to the row rules of their table, by Polars and Great Expectations.

    Raises LakeError where they cannot be read, which reaches another process as it is.
    """
    folder = lake.location(contract)
    by_uri = {f"{folder}/{path}": path for path in paths}
    try:
        chunks = lake.frame_of_files(contract, list(by_uri)).collect_batches(chunk_size=CHUNK_ROWS)
        held = reduce(Held.__add__, (_hold(chunk, contract) for chunk in chunks), Held())
    except ANY_FAILURE as error:
        raise LakeError(f"{type(error).__name__}: {first_words(error)}") from None
    rows = Counter({path: held.rows[uri] for uri, path in by_uri.items()})
    return Held(rows, held.failed, frozenset(by_uri[uri] for uri in held.broken), held.false_requests)


def _hold(chunk: pl.DataFrame, contract: Contract) -> Held:
    kept = kept_rules(chunk, contract)
    report = validate(chunk, contract, is_whole=False)
    failed = {
        "polars": Counter(kept.select((~pl.all()).sum()).row(0, named=True)),
        "great_expectations": Counter({result.rule_id: result.rows_failed for result in report.results}),
    }
    false = false_requests(chunk).arg_true() if contract.table == CALLS.table else ()
    by_polars = kept.select(~pl.all_horizontal(pl.all())).to_series().arg_true()
    broken = sorted({*false, *by_polars, *frozenset().union(*report.failing_rows.values())})
    rows = Counter(dict(chunk[FILE].value_counts().iter_rows()))
    return Held(rows, failed, frozenset(chunk[FILE].gather(broken).unique()), len(false))
