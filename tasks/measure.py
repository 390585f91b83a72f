"""Measure: the metric snapshot of a run, computed from pinned versions of its tables."""

from collections.abc import Mapping, Sequence

import polars as pl

from contracts.contract import Contract
from contracts.errors import LakeError
from contracts.judge_epochs import JUDGE_EPOCHS
from contracts.tables import RUN_CALLS, RUN_ITEMS
from storage.lake import Lake
from storage.snapshots import Snapshot, land_snapshot
from suites.base import Options, Suite
from tasks.context import CODE_VERSION, SEED, RunContext
from tasks.epochs import epoch_warnings
from tasks.usage import usage_metrics

ITEM_KEY = ("prompt_hash", "judge_hash", "sample_hash", "replicate")

Versions = Mapping[str, int | None]  # table to version; None where the table does not exist yet


def measure(context: RunContext, warnings: Sequence[str] = ()) -> str:
    """Compute and land the snapshot of the run from the tables as they are now; returns its id.

    Raises LakeError where the run has no result rows at all.
    """
    suite = context.suite
    pinned = {contract.table: context.lake.version(contract) for contract in inputs(suite)}
    if pinned[suite.results.table] is None:
        raise LakeError(
            f"there is nothing to measure: no row of {suite.results.table} has landed in {context.lake.uri}"
        )
    frame = run_frame(context.lake, suite, context.run_id, pinned)
    calls = run_calls(context.lake, context.run_id, pinned)
    said = suite.warnings(frame) if suite.warnings else ()
    moved = epoch_warnings(context.lake, suite, context.run_id)
    snapshot = Snapshot(
        run_id=context.run_id,
        suite=suite.name,
        pinned_versions=pinned,
        definition_hash=definition_hash_of(suite, context.options),
        scorer_version=suite.scorer_version,
        seed=SEED,
        options=context.options,
        code_version=CODE_VERSION,
        warnings=(*warnings, *said, *moved),
    )
    return land_snapshot(context.lake, snapshot, compute(frame, calls, suite, context.options, SEED))


def inputs(suite: Suite) -> tuple[Contract, ...]:
    """The tables a snapshot of the suite is computed from."""
    judged = (JUDGE_EPOCHS,) if suite.baseline_judges else ()  # no value follows from it, but a warning may
    return (RUN_ITEMS, RUN_CALLS, suite.results, *suite.inputs, *judged)


def compute(frame: pl.DataFrame, calls: pl.DataFrame, suite: Suite, options: Options, seed: int) -> pl.DataFrame:
    """The metric values of a run's frame and calls: the same of these, options and seed give the same bytes."""
    from metrics.compute import measure as measure_frame

    values = [measure_frame(frame, suite.metrics(options), seed=seed, cluster=suite.cluster), usage_metrics(calls)]
    if suite.further_metrics is not None:
        values.append(suite.further_metrics(frame, options, seed))
    return pl.concat(values)


def run_frame(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.DataFrame:
    """What the metrics of a run are computed from: its result rows, and what the suite adds to them.

    `dataset_version` is the run's.
    """
    rows = run_results(lake, suite, run_id, versions)
    if suite.assemble is not None:
        rows = suite.assemble(rows, {c.table: pinned_frame(lake, c, versions) for c in suite.inputs})
    return rows.collect()


def run_results(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.LazyFrame:
    """The result rows of the items of a run."""
    items = pinned_frame(lake, RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    models = items.select("model").unique().collect()["model"].to_list()
    results = pinned_frame(lake, suite.results, versions).filter(
        pl.col("model").is_in(models), pl.col("scorer_version") == suite.scorer_version
    )
    for name in {"judge", "judge_hash"} - suite.results.row.model_fields.keys():
        results = results.with_columns(pl.lit(None, pl.String).alias(name))  # judged by rules
    ours = items.select(*ITEM_KEY, "dataset_version").unique()
    return results.join(ours, on=ITEM_KEY, how="inner", nulls_equal=True)


def run_calls(lake: Lake, run_id: str, versions: Versions) -> pl.DataFrame:
    """What the run asked, by subject and judge; nothing where its results were imported."""
    return pinned_frame(lake, RUN_CALLS, versions).filter(pl.col("run_id") == run_id).collect()


def pinned_frame(lake: Lake, contract: Contract, versions: Versions) -> pl.LazyFrame:
    """A table at its pinned version: without rows where it did not exist then, the newest where none is pinned."""
    if contract.table in versions and versions[contract.table] is None:
        return lake.frame(contract).clear()
    return lake.frame(contract, versions.get(contract.table))


def definition_hash_of(suite: Suite, options: Options) -> str:
    """SHA-256 over all that decides the suite's values under these options."""
    from contracts.hashing import content_hash
    from metrics.definition import definition_hash, function_hash

    declared = [definition_hash(suite.metrics(options)), function_hash(usage_metrics)]
    further = [function_hash(suite.further_metrics), dict(options)] if suite.further_metrics else []
    return content_hash([*declared, *further])
