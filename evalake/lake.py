"""A lake as Python sees it: runs are made and found in it, and its tables are frames."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from contracts.tables import RUNS
from core.default_lake import lake_uri
from core.errors import UsageError
from evalake.run import Run, order_run
from storage import lake as tables
from storage.sql.query import query
from suites.registry import all_contracts
from tasks.conclusions.compare import compare_sides
from tasks.runtime.runs import tagged, with_labels, with_lost


def open_lake(uri: str | os.PathLike[str] | None = None, storage_options: Mapping[str, str] | None = None) -> "Lake":
    """Open a lake; one that is not there yet is made by its first run.

    Args:
        uri: A folder, or a URI that Delta supports; without it EVALAKE_LAKE, or ./lake.
        storage_options: Those of the object store; credentials usually come from the environment.
    """
    where = lake_uri(None) if uri is None else os.fspath(uri)
    return Lake(tables.Lake(where, dict(storage_options or {})))


@dataclass(frozen=True)
class Lake:
    """A lake of runs. What is read is as it is at that moment."""

    tables: tables.Lake

    @property
    def uri(self) -> str:
        """Where it is."""
        return self.tables.uri

    def run(
        self,
        suite: str,
        *,
        models: Sequence[str] | None = None,
        judges: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
        limit: int | None = None,
        first: int | None = None,
        samples: Sequence[str] | None = None,
        only_failed: str | None = None,
        replicates: int = 1,
        first_replicate: int = 0,
        tags: Sequence[str] = (),
        note: str | None = None,
        prompt_types: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
        max_missing: float | None = None,
        accept_unreadable: bool = False,
        config: str | Path | None = None,
    ) -> Run:
        """Evaluate models on a suite: only what the ledger does not know yet is asked.

        The options are those of `evalake run`, and what they leave open is the suite's default. A run that could not
        ask everything is returned, too: its `state` is incomplete, and its `message` says why.

        Raises:
            EvalakeError: What is asked for cannot be, or the run failed.
        """
        run_id = order_run(
            suite=suite,
            lake=self.uri,
            models=models,
            judges=judges,
            datasets=datasets,
            limit=limit,
            first=first,
            samples=samples,
            only_failed=only_failed,
            replicates=replicates,
            first_replicate=first_replicate,
            tags=tags,
            note=note,
            prompt_types=prompt_types,
            max_cost_usd=max_cost_usd,
            max_calls=max_calls,
            max_missing=max_missing,
            accept_unreadable=accept_unreadable,
            configuration_file=None if config is None else str(config),
        )
        return self.find(run_id)

    def runs(self, suite: str | None = None, *, tag: str | None = None) -> pl.DataFrame:
        """List the runs, newest first, with their tags and notes; those of one suite, or with a tag, where named."""
        rows = tagged(with_labels(with_lost(self.tables.frame(RUNS))), tag)
        if suite is not None:
            rows = rows.filter(suite=suite)
        return rows.sort("started_at", descending=True).collect()

    def find(self, run_id: str | None = None, *, suite: str | None = None, tag: str | None = None) -> Run:
        """Find a run: that of this id, or the newest (of a suite, with a tag). Raises UsageError for none."""
        rows = self.runs(suite, tag=tag)
        if run_id is not None:
            rows = rows.filter(run_id=run_id)
        if rows.is_empty():
            chosen = [f"of {suite}"] * bool(suite) + [f"tagged {tag}"] * bool(tag)
            what = run_id or " ".join(chosen) or "yet"
            raise UsageError(f"the lake {self.uri} has no run {what}: `runs()` has those there are")
        return Run(self.tables, rows.row(0, named=True))

    def compare(
        self,
        a: str,
        b: str,
        *,
        metric: str | None = None,
        run: str | None = None,
        tag: str | None = None,
        force: bool = False,
    ) -> pl.DataFrame:
        """Compute how A differs from B in every metric, paired by unit, as `evalake compare` does.

        Args:
            a: A model, a run, a snapshot, RUN:MODEL or RUN:MODEL:PROMPT_TYPE.
            b: What A is compared with, named alike.
            metric: Only this metric, in all of its slices.
            run: The run that models are of; without it the newest.
            tag: Without `run`, the newest with this tag.
            force: Compare what is refused.
        """
        return compare_sides(self.tables, a, b, run_id=run, tag=tag, metric=metric, force=force).rows

    def sql(self, query_text: str, *, at: Mapping[str, int] | None = None) -> pl.DataFrame:
        """Ask the tables and views a question in DuckDB's SQL; `at` reads tables as they were at a version."""
        return query(self.tables, all_contracts(), query_text, versions=dict(at or {}))

    def _repr_html_(self) -> str:
        """Show the runs in a notebook."""
        from evalake.display import titled

        columns = ("run_id", "suite", "state", "started_at", "samples", "models", "cost_usd", "message")
        return titled(f"Lake {self.uri}", self.runs().select(columns))
