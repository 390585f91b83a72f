"""Measure: the metric snapshot of a run, computed from pinned versions of its tables."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, HUMAN_LABELS, JUDGE_VERSIONS, RUN_CALLS, RUN_ITEMS, RUNS, SAMPLES
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.core.errors import LakeError
from evalake.metrics.agreement import BY_DAWID_SKENE, FEWEST_ITEMS
from evalake.metrics.compute import Metric, definition_hash
from evalake.metrics.limits import undecided_trials
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Options, Suite
from evalake.sdk.people import measure_people, people_metrics, with_people
from evalake.sdk.sample import Seen
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Snapshot, land_snapshot
from evalake.tasks.calibrate import calibration_notes
from evalake.tasks.canary import version_warnings
from evalake.tasks.clusters import (
    Versions,
    item_hash,
    run_samples,
    shared_inputs,
    twins_of,
    with_clusters,
    with_strata,
    with_twins,
)
from evalake.tasks.converse import Conversation
from evalake.tasks.failures import headline_bounds, lacking, missing_items
from evalake.tasks.runtime.context import CODE_VERSION, SEED, RunContext
from evalake.tasks.runtime.runs import Tally, under_its_criteria

USAGE_VERSION = 2
"""Changes whenever the metrics of usage do."""

METRICS = ("calls_made", "calls_from_ledger", "cost_usd_avoided", "latency_from_ledger")

Pair = tuple[str, str]  # subject and judge; no judge is an empty name


class CallCounter:
    """Counts every call once for the run, and once for each pair of subject and judge that it was made for."""

    def __init__(self) -> None:
        self.total = Tally()
        self.imported = 0  # replies from logs of other tools
        self.pairs: defaultdict[Pair, Tally] = defaultdict(Tally)
        self._counted = Seen()

    def add(self, conversations: Sequence[Conversation]) -> None:
        """Count the calls of some conversations; those that were counted before are not counted again."""
        of_pair: defaultdict[Pair, list[Conversation]] = defaultdict(list)
        for conversation in conversations:
            of_pair[conversation.item.model, conversation.item.judge or ""].append(conversation)
        for pair, theirs in of_pair.items():
            new = list(self._new(theirs, None))
            self.imported += sum(each.imported for each in new)
            asked = _tally(new)
            self.total += asked
            # Only what several judges judge is shared by pairs.
            self.pairs[pair] += _tally(self._new(theirs, pair)) if pair[1] else asked

    def _new(self, conversations: Iterable[Conversation], pair: Pair | None) -> Iterator[Exchange]:
        for conversation in conversations:
            for answer in conversation.answered:
                failed = isinstance(answer.outcome, Failure)
                if self._counted.add(repr((pair, answer.prompt_hash, conversation.item.replicate, failed))):
                    yield answer


def save_usage(lake: Lake, run_id: str, pairs: Mapping[Pair, Tally]) -> None:
    """Land the calls of a run by subject and judge, which replace earlier counts."""
    names = RUN_CALLS.row.model_fields.keys() & Tally.__dataclass_fields__.keys()
    rows: list[dict[str, Any]] = [
        {"run_id": run_id, "model": model, "judge": judge, **{name: getattr(tally, name) for name in names}}
        for (model, judge), tally in pairs.items()
    ]
    if rows:
        land(lake, RUN_CALLS, conform(rows, RUN_CALLS))


def usage_metrics(calls: pl.DataFrame) -> pl.DataFrame:
    """Turn the rows of `run_calls` of one run into metrics: model, judge and the columns of `MEASURES`.

    n is the number of calls that were answered; counts and sums have no uncertainty.
    """
    from evalake.metrics.compute import MEASURES, RELIABLE_FROM

    return (
        calls.with_columns(
            n=(pl.col("calls_made") + pl.col("calls_from_ledger")).cast(pl.Int64),
            judge=pl.when(pl.col("judge") != "").then("judge"),
        )
        .unpivot(METRICS, index=["model", "judge", "n"], variable_name="metric", value_name="value")
        .with_columns(
            pl.lit("all").alias("slice"),
            pl.lit("").alias("slice_value"),
            pl.when(pl.col("n") > 0).then(pl.col("value").cast(pl.Float64)).alias("value"),
            pl.lit(None, pl.Int64).alias("tier"),
            *(pl.lit(None, pl.Float64).alias(name) for name in ("n_eff", "se", "ci_low", "ci_high")),
            pl.col("n").alias("units"),
            (pl.col("n") >= RELIABLE_FROM).alias("reliable"),
        )
        .select("model", "judge", *MEASURES)
        .sort("model", "judge", "metric")
    )


def _tally(answers: Iterable[Exchange]) -> Tally:
    calls = list(answers)
    made = [a.outcome for a in calls if isinstance(a.outcome, Reply) and not a.from_ledger]
    known = [a.outcome for a in calls if isinstance(a.outcome, Reply) and a.from_ledger]
    failures = [a.outcome for a in calls if isinstance(a.outcome, Failure)]
    return Tally(
        calls_made=len(made),
        calls_from_ledger=len(known),
        calls_failed=sum(failure.kind != "budget" for failure in failures),
        latency_from_ledger=sum(reply.latency_ms is not None for reply in known),
        input_tokens=_sum(reply.input_tokens for reply in made),
        output_tokens=_sum(reply.output_tokens for reply in made),
        cost_usd=_plus_failed(_sum(reply.cost_usd for reply in made), (*made, *failures)),
        cost_usd_avoided=_sum(reply.cost_usd for reply in known),
    )


def _plus_failed(cost_usd: float | None, outcomes: Iterable[Reply | Failure]) -> float | None:
    """Add to a cost that of the failed attempts whose usage is known."""
    return None if cost_usd is None else cost_usd + sum(outcome.failed_cost_usd or 0.0 for outcome in outcomes)


def _sum(values: Iterable[Any]) -> Any:
    """Compute the sum, or None where a value is unknown."""
    listed = list(values)
    return None if any(value is None for value in listed) else sum(listed)


def was_drawn(lake: Lake, run_id: str) -> bool:
    """Tell whether the samples of a run were drawn, stratified."""
    runs = lake.frame(RUNS).filter(pl.col("run_id") == run_id).select("parameters").collect()
    given = json.loads(runs["parameters"][0] or "{}") if runs.height else {}
    return given.get("draw") is not None or given.get("pooled") is not None


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
    calls = run_calls(context.lake, context.run_id, pinned)
    with measured_rows(context.lake, suite, context.run_id, pinned, context.options) as rows:
        lacks = lacking(context.lake, suite, context.run_id, pinned, rows)
        bounded = headline_bounds(suite, rows, lacks, context.options)
        told = [each.sentence for each in missing_items(lacks, bounded)]
        del lacks
        told += _warnings(context, pinned, rows)
        values = compute(rows, calls, suite, context.options)
    snapshot = Snapshot(
        run_id=context.run_id,
        suite=suite.name,
        pinned_versions=pinned,
        definition_hash=definition_hash_of(suite, context.options),
        scorer_version=suite.scoring.version,
        seed=SEED,
        options=context.options,
        code_version=CODE_VERSION,
        warnings=(*warnings, *told),
    )
    return land_snapshot(context.lake, snapshot, values, bounded)


def _warnings(context: RunContext, pinned: Versions, rows: pl.LazyFrame) -> Iterator[str]:
    """Yield what the snapshot of a run warns of, but for missing items."""
    lake, suite, run_id = context.lake, context.suite, context.run_id
    known = rows.select("dataset", *({"judge"} & {*rows.collect_schema()})).unique().collect(engine="streaming")
    if known["dataset"].n_unique() > 1:
        named = rows.select("sample_hash").collect(engine="streaming")
        yield from shared_inputs(named, with_twins(lake, suite, run_id, pinned))
    if suite.metrics.warnings:
        yield from suite.metrics.warnings(rows.collect())
    yield from version_warnings(lake, suite, run_id)
    yield from several_versions(lake, run_id, pinned)
    judges = sorted(known["judge"].drop_nulls().unique()) if "judge" in known.columns else []
    yield from calibration_notes(context, judges)


@contextmanager
def measured_rows(
    lake: Lake, suite: Suite, run_id: str, versions: Versions, options: Options
) -> Iterator[pl.LazyFrame]:
    """Yield a scan of the rows that a run's metrics are computed from, in a temporary file: each metric reads its own.

    They are narrow, with the columns that are read, unless the suite reads rows as a whole or joins others to them.
    """
    read, labels = expressions_read(suite, options), _labels(lake, suite, versions)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        if read is None or suite.metrics.join_inputs is not None or _is_labelled(suite, labels):
            run_frame(lake, suite, run_id, versions).write_parquet(file)
        else:
            _narrow_rows(lake, suite, run_id, versions, read).sink_parquet(file)
        yield pl.scan_parquet(file)


def over_all(metrics: Iterable[Metric], name: str | None) -> Metric | None:
    """Find the metric of this name over all samples; None where it is not computed row by row."""
    ours = (each for each in metrics if each.name == name and "all" in each.slices)
    return next((replace(each, slices=("all",)) for each in ours), None)


def several_versions(lake: Lake, run_id: str, versions: Versions) -> list[str]:
    """Name the models of a run, subjects and judges, whose replies came from several versions."""
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    replies = lake.frame(CALLS).select("model", "model_reported", *ledger.KEY).drop_nulls("model_reported")
    known = replies.group_by("model").agg(pl.col("model_reported").n_unique()).filter(pl.col("model_reported") > 1)
    if not (models := known.collect(engine="streaming")["model"].to_list()):  # of any run: nothing is to be joined
        return []
    reported = replies.filter(pl.col("model").is_in(models)).join(ledger.calls_of(items), on=ledger.KEY, how="semi")
    counts = reported.group_by("model", "model_reported").len().collect(engine="streaming")
    counts = counts.sort("model", "model_reported").filter(pl.len().over("model") > 1)
    several = counts.group_by("model", maintain_order=True)
    versions_of = {
        model: [f"{version} ({count:,} calls)" for version, count in part.select("model_reported", "len").iter_rows()]
        for (model,), part in several
    }
    return [f"{model} was answered by several versions: {', '.join(listed)}" for model, listed in versions_of.items()]


def inputs(suite: Suite) -> tuple[Contract, ...]:
    """List the tables that a snapshot of the suite is computed from."""
    judged = (JUDGE_VERSIONS,) if suite.is_judged else ()  # no value follows from it, but a warning may
    people = (HUMAN_LABELS,) if suite.people is not None and HUMAN_LABELS not in suite.metrics.inputs else ()
    return (RUN_ITEMS, RUN_CALLS, SAMPLES, suite.results, *suite.metrics.inputs, *people, *judged)


def compute(scan: pl.LazyFrame, calls: pl.DataFrame, suite: Suite, options: Options) -> pl.DataFrame:
    """Compute the metric values of a run's rows and calls; the same rows, calls and options give the same values."""
    from evalake.metrics.compute import measure as measure_frame
    from evalake.metrics.variance import variance_components

    values = [measure_frame(scan, suite.all_metrics(options), cluster="cluster"), usage_metrics(calls)]
    if suite.metrics.repeated is not None:
        values.append(variance_components(scan, suite.metrics.repeated))
    if suite.metrics.across_rows is not None:
        values.append(suite.metrics.across_rows(scan.collect(), options))
    if suite.people is not None:
        values.append(measure_people(scan, suite.people))
    few = pl.col("judge").str.starts_with(BY_DAWID_SKENE).fill_null(False) & (pl.col("units") < FEWEST_ITEMS)
    texts = pl.col("model", "judge").cast(pl.String)  # of categories
    return pl.concat(each.with_columns(texts) for each in values).with_columns(reliable=pl.col("reliable") & ~few)


def expressions_read(suite: Suite, options: Options) -> Sequence[pl.Expr] | None:
    """List what the suite's metrics read of result rows; None where it reads rows as a whole."""
    declared = suite.metrics
    if declared.across_rows is not None or declared.warnings is not None:
        return None
    metrics, others = suite.all_metrics(options), (declared.repeated, suite.scoring.outcomes.missing)
    slices = {name for metric in metrics for name in metric.slices}
    return [
        *(each for metric in metrics for each in metric.estimator.inputs().values()),
        *(each for metric in metrics for each in undecided_trials(metric.estimator)),
        *(each for columns in declared.trivial.values() for each in columns.values()),
        *(each for each in others if each is not None and not {*each.meta.root_names()} & {*declared.unmeasured}),
        *map(pl.col, sorted({*slices, *_ALWAYS_READ} - {*declared.unmeasured})),
    ]


_ALWAYS_READ = ("dataset", "sample_hash", "model", "judge", "prompt_type", "replicate")


def run_frame(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.DataFrame:
    """Read the input of a run's metrics: its result rows, and the columns that the suite adds.

    `dataset_version` is the run's; rows of one `cluster` depend on one another.
    """
    rows = _clustered(lake, suite, run_id, versions, run_results(lake, suite, run_id, versions))
    if suite.people is not None:
        rows = _with_people(rows, _labels(lake, suite, versions), suite)
    if suite.metrics.join_inputs is not None:
        rows = suite.metrics.join_inputs(rows, {c.table: lake.pinned(c, versions) for c in suite.metrics.inputs})
    return rows.collect()


def _clustered(lake: Lake, suite: Suite, run_id: str, versions: Versions, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add the clusters of a run's samples to rows, and the strata of a draw."""
    twins, samples = twins_of(with_twins(lake, suite, run_id, versions)), run_samples(lake, suite, run_id, versions)
    rows = with_clusters(rows, samples, twins)
    return with_strata(rows, samples) if was_drawn(lake, run_id) else rows


TRIED = 1_000
"""Rows on which expressions are tried."""


def _narrow_rows(lake: Lake, suite: Suite, run_id: str, versions: Versions, read: Sequence[pl.Expr]) -> pl.LazyFrame:
    """Read the columns of a run's rows that these expressions read, with the clusters, as narrow as they can be."""
    rows, names = run_results(lake, suite, run_id, versions), {name for each in read for name in each.meta.root_names()}
    rows = rows.select(name for name in rows.collect_schema() if name in names)
    rows = narrow(rows, texts_read(rows.head(TRIED).collect(), read))
    return _clustered(lake, suite, run_id, versions, rows)


def texts_read(rows: pl.DataFrame, read: Iterable[pl.Expr]) -> set[str]:
    """Find the columns that must stay texts, for an expression raises where they are categories or hashes."""
    tried, kept = narrow(rows.lazy(), ()).collect(), set[str]()
    for each in read:
        try:
            tried.select(each)
        except pl.exceptions.PolarsError:
            kept.update(each.meta.root_names())
    return kept


_IDENTITIES = ("sample_hash", "cluster")


def narrow(rows: pl.LazyFrame, kept: Collection[str]) -> pl.LazyFrame:
    """Replace texts by categories, and those that name samples by hashes: 4 or 8 bytes each. Those in `kept` stay."""
    texts = [name for name, kind in rows.collect_schema().items() if kind == pl.String and name not in kept]
    return rows.with_columns(
        pl.col(name).hash() if name in _IDENTITIES else pl.col(name).cast(pl.Categorical) for name in texts
    )


def _labels(lake: Lake, suite: Suite, versions: Versions) -> pl.LazyFrame:
    return lake.pinned(HUMAN_LABELS, versions).filter(pl.col("suite") == suite.name)


def _is_labelled(suite: Suite, labels: pl.LazyFrame) -> bool:
    return suite.people is not None and not labels.head(1).collect().is_empty()


def _with_people(rows: pl.LazyFrame, labels: pl.LazyFrame, suite: Suite) -> pl.LazyFrame:
    """Add people's labels to result rows; without labels, add null columns and join nothing."""
    assert suite.people is not None
    answered = with_people(rows, labels, suite.people)
    if _is_labelled(suite, labels):
        return answered
    own = rows.collect_schema()
    said = {name: kind for name, kind in answered.collect_schema().items() if name not in own}
    return rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in said.items())


def run_results(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.LazyFrame:
    """Read the result rows of the items of a run, with null columns of a judge where the suite has none.

    `dataset_version` is the run's.
    """
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    item = item_hash(suite)
    ours = items.select(item).collect(engine="streaming")["item"]
    known = items.select("model", "dataset", "dataset_version").unique().collect(engine="streaming")
    results = lake.pinned(suite.results, versions).filter(
        pl.col("model").is_in(known["model"].unique().implode()),
        pl.col("scorer_version") == suite.scoring.version,
        under_its_criteria(lake, suite, run_id),
    )
    found = results.with_columns(item).filter(pl.col("item").is_in(ours.implode())).drop("item")
    missing = [name for name in ITEM_KEY if name not in suite.results.column]
    datasets = known.unique("dataset")  # a run has one version of each
    version = pl.col("dataset").replace_strict(datasets["dataset"], datasets["dataset_version"], default=None)
    return found.with_columns(*(pl.lit(None, pl.String).alias(name) for name in missing), dataset_version=version)


def run_calls(lake: Lake, run_id: str, versions: Versions) -> pl.DataFrame:
    """Read the calls of a run by subject and judge; empty for an import."""
    return lake.pinned(RUN_CALLS, versions).filter(pl.col("run_id") == run_id).collect()


def definition_hash_of(suite: Suite, options: Options) -> str:
    """Compute the SHA-256 over the declared versions of all that decides the suite's values under these options."""
    people = () if suite.people is None else people_metrics(suite.people)
    return definition_hash(
        (*suite.all_metrics(options), *people), USAGE_VERSION, suite.metrics.across_rows_version, dict(options)
    )
