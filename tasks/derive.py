"""Derive: what follows from a run's rows as a whole (a panel's rows) is published and joins the run's manifest."""

from collections.abc import Mapping
from typing import Any

from contracts.arrow import conform
from contracts.hashing import content_hash
from contracts.tables import RUN_ITEMS
from storage.landing import land
from tasks.context import RunContext
from tasks.measure import run_results
from tasks.publish import Published, publish_results


def derive(context: RunContext, origin: str) -> Published:
    """Publish what the suite derives from the run's rows as they are now; nothing where it derives nothing.

    Doing it again adds what has become derivable since.
    """
    suite = context.suite
    if suite.derive is None or not context.lake.exists(suite.results):
        return Published()
    derived = suite.derive(run_results(context.lake, suite, context.run_id, {}).collect())
    published = publish_results(context, derived.rows, origin)
    if derived.items:
        land(context.lake, RUN_ITEMS, conform([_manifest_row(context, item) for item in derived.items], RUN_ITEMS))
    return published


def _manifest_row(context: RunContext, item: Mapping[str, Any]) -> dict[str, Any]:
    identity = [item["sample_hash"], item["model"], item["judge"], item["prompt_type"], item["replicate"]]
    return {**item, "run_id": context.run_id, "suite": context.suite.name, "item_id": content_hash(identity)}
