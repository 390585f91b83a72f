"""Measure: the metric snapshot of a run, computed from pinned versions of its tables."""

from collections.abc import Mapping, Sequence

import polars as pl

from contracts.contract import Contract
from contracts.errors import LakeError
from contracts.tables import RUN_ITEMS
from storage.lake import Lake
from storage.snapshots import Snapshot, land_snapshot
from suites.base import Options, Suite
from tasks.context import CODE_VERSION, SEED, RunContext

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
    said = suite.warnings(frame) if suite.warnings else ()
    snapshot = Snapshot(
        run_id=context.run_id,
        suite=suite.name,
        pinned_versions=pinned,
        definition_hash=definition_hash_of(suite, context.options),
        scorer_version=suite.scorer_version,
        seed=SEED,
        options=context.options,
        code_version=CODE_VERSION,
        warnings=(*warnings, *said),
    )
    return land_snapshot(context.lake, snapshot, compute(frame, suite, context.options, SEED))


def inputs(suite: Suite) -> tuple[Contract, ...]:
    """The tables a snapshot of the suite is computed from."""
    return (RUN_ITEMS, suite.results, *suite.inputs)


def compute(frame: pl.DataFrame, suite: Suite, options: Options, seed: int) -> pl.DataFrame:
    """The metric values of a run's frame: the same frame, options and seed give the same bytes."""
    from metrics.compute import measure as measure_frame

    values = measure_frame(frame, suite.metrics(options), seed=seed, cluster=suite.cluster)
    if suite.further_metrics is None:
        return values
    return pl.concat([values, suite.further_metrics(frame, options, seed)])


def run_frame(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.DataFrame:
    """What the metrics of a run are computed from: its result rows, and what the suite adds to them.

    `dataset_version` is the run's; `call_made` and `call_from_ledger` tell, once for each subject call, who paid.
    """
    rows = run_results(lake, suite, run_id, versions)
    if suite.assemble is not None:
        rows = suite.assemble(rows, {c.table: lake.frame(c, versions.get(c.table)) for c in suite.inputs})
    return rows.collect()


def run_results(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.LazyFrame:
    """The result rows of the items of a run."""
    items = lake.frame(RUN_ITEMS, versions.get(RUN_ITEMS.table)).filter(pl.col("run_id") == run_id)
    models = items.select("model").unique().collect()["model"].to_list()
    results = lake.frame(suite.results, versions.get(suite.results.table)).filter(
        pl.col("model").is_in(models), pl.col("scorer_version") == suite.scorer_version
    )
    for name in {"judge", "judge_hash"} - suite.results.row.model_fields.keys():
        results = results.with_columns(pl.lit(None, pl.String).alias(name))  # judged by rules
    ours = items.select(*ITEM_KEY, "dataset_version").unique()
    once = pl.struct("prompt_hash", "replicate").is_first_distinct() & (pl.col("origin") == "call")
    made = pl.col("run_id") == run_id
    return results.join(ours, on=ITEM_KEY, how="inner", nulls_equal=True).with_columns(
        call_made=once & made, call_from_ledger=once & ~made
    )


def definition_hash_of(suite: Suite, options: Options) -> str:
    """SHA-256 over all that decides the suite's values under these options."""
    from contracts.hashing import content_hash
    from metrics.definition import definition_hash, function_hash

    further = function_hash(suite.further_metrics) if suite.further_metrics else None
    declared = definition_hash(suite.metrics(options))
    return declared if further is None else content_hash([declared, further, dict(options)])
