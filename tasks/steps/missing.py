"""Missing items: how many of each model, why, and what the headline metrics could be if they were known."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from contracts.tables import RUN_ITEMS
from metrics.bounds import Bounds, bounds
from reports.coverage import IN_QUARANTINE, NOT_ASKED
from reports.missing import Missing
from storage.lake import Lake
from storage.refused import refused_rows
from suites.base import Options, Suite
from tasks.steps.failures import with_failed_calls

ASKED = ("prompt_hash", "judge_hash", "sample_hash", "replicate")
KEY = (*ASKED, "endpoint", "judge_endpoint")


def missing_items(
    lake: Lake, suite: Suite, run_id: str, versions: Mapping[str, int | None], frame: pl.DataFrame, options: Options
) -> list[Missing]:
    """Find what a run's manifest lists and its result rows lack, by model and judge; nothing where all is there.

    Args:
        lake: The lake.
        suite: The suite of the run.
        run_id: The run.
        versions: The table versions that the rows were read at.
        frame: The run's rows, as the metrics are computed from them.
        options: The suite's options.
    """
    listed = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    # Each row is of another item, unless the suite joined others to them.
    if suite.metrics.join_inputs is None and listed.select(pl.len()).collect().item() == frame.height:
        return []
    items = listed.collect()
    lacking = items.join(frame.select(KEY), on=list(KEY), how="anti", nulls_equal=True)
    reasons = with_failed_calls(lake, run_id, lacking.lazy()).collect()
    reasons = reasons.join(refused_items(lake, suite, run_id), on=list(ASKED), how="left", nulls_equal=True)
    reasons = reasons.with_columns(kind=pl.coalesce("given_up", "refused", pl.lit(NOT_ASKED)))
    planned = dict(_by(items))
    return [
        Missing(
            model,
            judge,
            planned[model, judge].height,
            part.height,
            dict(part["kind"].value_counts(sort=True).iter_rows()),
            dict(_headline(suite, frame, model, judge, part.height, options)),
        )
        for (model, judge), part in _by(reasons)
    ]


def refused_items(lake: Lake, suite: Suite, run_id: str) -> pl.DataFrame:
    """Read which items of a run have rows in quarantine, by key, with why in `refused`."""
    refused = refused_rows(lake, run_id, [suite.results])
    rows = [{name: row.get(name) for name in ASKED} for row in refused]
    schema = {"prompt_hash": pl.String, "judge_hash": pl.String, "sample_hash": pl.String, "replicate": pl.Int64}
    return pl.DataFrame(rows, schema=schema, strict=False).unique().with_columns(refused=pl.lit(IN_QUARANTINE))


def _headline(
    suite: Suite, frame: pl.DataFrame, model: str, judge: str | None, missing: int, options: Options
) -> Iterator[tuple[str, Bounds]]:
    """Yield the bounds of the headline metrics that have any."""
    rows = frame.filter(pl.col("model") == model, pl.col("judge").eq_missing(judge))
    for metric in suite.all_metrics(options):
        if metric.name in suite.metrics.headline and not rows.is_empty():
            ends = bounds(rows, replace(metric, slices=("all",)), missing)
            if ends is not None:
                yield metric.name, ends


def _by(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, str | None], pl.DataFrame]]:
    for (model, judge), part in rows.sort("model", "judge").group_by("model", "judge", maintain_order=True):
        yield (str(model), None if judge is None else str(judge)), part
