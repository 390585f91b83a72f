"""What a run is over, in words: for the terminal, and for the log of its flow run."""

import logging
from collections.abc import Iterator

from suites.base.sources import summary
from tasks.steps.preflight import Plan

logger = logging.getLogger("evalake.runs")


def lines_of(plan: Plan) -> Iterator[str]:
    """Say a run's datasets with their counts by category, what was left out of each, and who is asked."""
    for dataset in plan.datasets:
        counts = summary(dataset)
        parts = ", ".join(f"{category} {count}" for category, count in counts.samples.items())
        yield f"{dataset.name}: {len(dataset.samples)} samples ({parts})"
        yield from (f"  {note}" for note in dataset.notes)
        if counts.skipped:
            yield f"  left out: {', '.join(f'{count} {reason}' for reason, count in counts.skipped.items())}"
    judges = f", judged by {', '.join(plan.judges)}" if plan.judges else ""
    yield f"{plan.items} items, {', '.join(plan.models)}{judges}"


def log_plan(plan: Plan) -> None:
    """Log what a run is over, and where its rows go."""
    for line in lines_of(plan):
        logger.info("%s", line)
    logger.info("lake %s", plan.lake.uri)
    if (file := plan.configuration.distrusted_file) is not None:
        logger.warning("configuration %s of the working directory, which nobody named", file)
