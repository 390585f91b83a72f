"""Derive: what follows from a run's rows as a whole (a panel's rows) is published and joins the run's manifest."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from contracts.compile.arrow import conform
from contracts.tables import RUN_ITEMS
from core.hashing import content_hash
from storage.landing import land
from tasks.runtime.context import RunContext
from tasks.steps.measure import run_results
from tasks.steps.publish import Published, publish_results


def derive(context: RunContext, origin: str) -> Published:
    """Publish what the suite derives from the run's rows as they are now; nothing where it derives nothing.

    Doing it again adds what has become derivable since.
    """
    suite = context.suite
    if suite.scoring.derive is None or not context.lake.exists(suite.results):
        return Published()
    results = run_results(context.lake, suite, context.run_id, {}).collect()
    derived = suite.scoring.derive({suite.results.table: results, **_further(context, results)}, context.options)
    published = publish_results(context, derived.rows, origin)
    if derived.items:
        land(context.lake, RUN_ITEMS, conform([_manifest_row(context, item) for item in derived.items], RUN_ITEMS))
    return published


def _further(context: RunContext, results: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Read the rows of the suite's further tables that belong to result rows."""
    key = context.suite.results.key
    ours = results.lazy().select(key)
    return {
        each.table: context.lake.frame(each).join(ours, on=list(key), how="semi", nulls_equal=True).collect()
        for each in context.suite.scoring.extra_tables
    }


def _manifest_row(context: RunContext, item: Mapping[str, Any]) -> dict[str, Any]:
    identity = [item["sample_hash"], item["model"], item["judge"], item["prompt_type"], item["replicate"]]
    return {**item, "run_id": context.run_id, "suite": context.suite.name, "item_id": content_hash(identity)}
