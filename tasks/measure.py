"""Measure: the metric snapshot of a run, computed from pinned versions of its tables."""

from collections.abc import Mapping, Sequence

import polars as pl

from contracts.contract import Contract
from contracts.errors import LakeError
from contracts.tables import RUN_ITEMS
from storage.lake import Lake
from storage.snapshots import Snapshot, land_snapshot
from suites.base import Suite
from tasks.context import CODE_VERSION, SEED, RunContext

ITEM_KEY = ("prompt_hash", "sample_hash", "replicate")


def measure(context: RunContext, warnings: Sequence[str] = ()) -> str:
    """Compute and land the snapshot of the run from the tables as they are now; returns its id."""
    pinned = {contract.table: _pinned_version(context.lake, contract) for contract in inputs(context.suite)}
    values = compute(context.lake, context.suite, context.run_id, pinned, SEED)
    snapshot = Snapshot(
        run_id=context.run_id,
        suite=context.suite.name,
        pinned_versions=pinned,
        definition_hash=_definition_hash(context.suite),
        scorer_version=context.suite.scorer_version,
        seed=SEED,
        code_version=CODE_VERSION,
        warnings=warnings,
    )
    return land_snapshot(context.lake, snapshot, values)


def inputs(suite: Suite) -> tuple[Contract, ...]:
    """The tables a snapshot of the suite is computed from."""
    return (RUN_ITEMS, suite.results)


def compute(lake: Lake, suite: Suite, run_id: str, pinned: Mapping[str, int], seed: int) -> pl.DataFrame:
    """The metric values of a run from given table versions: the same ones give the same bytes."""
    from metrics.compute import measure as measure_frame

    rows = run_results(lake, suite, run_id, pinned)
    return measure_frame(rows, suite.metrics, seed=seed, cluster=suite.cluster)


def run_results(lake: Lake, suite: Suite, run_id: str, pinned: Mapping[str, int] | None = None) -> pl.LazyFrame:
    """The result rows of a run's items, each with its dataset's version."""
    versions = pinned or {}
    items = lake.frame(RUN_ITEMS, versions.get(RUN_ITEMS.table)).filter(pl.col("run_id") == run_id)
    models = items.select("model").unique().collect()["model"].to_list()
    results = lake.frame(suite.results, versions.get(suite.results.table)).filter(
        pl.col("model").is_in(models), pl.col("scorer_version") == suite.scorer_version
    )
    if "judge" not in suite.results.row.model_fields:
        results = results.with_columns(pl.lit(None, pl.String).alias("judge"))  # judged by rules
    return results.join(items.select(*ITEM_KEY, "dataset_version").unique(), on=ITEM_KEY, how="inner")


def _pinned_version(lake: Lake, contract: Contract) -> int:
    version = lake.version(contract)
    if version is None:
        raise LakeError(f"there is nothing to measure: no row of {contract.table} has landed in {lake.uri}")
    return version


def _definition_hash(suite: Suite) -> str:
    from metrics.definition import definition_hash

    return definition_hash(suite.metrics)
