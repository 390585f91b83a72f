"""Artifacts: what a run leaves in the Prefect UI, a table of its headline metrics and a summary."""

from typing import Any

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from storage.snapshots import read_metrics
from tasks.context import RunContext
from tasks.runs import Run


def leave_artifacts(context: RunContext, run: Run) -> None:
    """Leave the artifacts of an ended run."""
    if run.snapshot_id is not None:
        create_table_artifact(
            headline(context, run.snapshot_id), key=f"metrics-{run.run_id}", description="Headline metrics"
        )
    create_markdown_artifact(_summary(run), key=f"run-{run.run_id}", description=f"{run.suite} {run.run_id}")


def headline(context: RunContext, snapshot_id: str) -> list[dict[str, Any]]:
    """One row a model, with the suite's headline metrics as columns."""
    rows = [row for row in read_metrics(context.lake, snapshot_id).iter_rows(named=True) if row["slice"] == "all"]
    subjects = dict.fromkeys((row["model"], row["judge"]) for row in rows)
    values = {(row["model"], row["judge"], row["metric"]): row["value"] for row in rows}
    return [
        {
            "model": model,
            **({"judge": judge} if judge else {}),
            **{m: values.get((model, judge, m)) for m in context.suite.headline},
        }
        for model, judge in subjects
    ]


def _summary(run: Run) -> str:
    tally = run.tally
    cost = "unknown" if tally.cost_usd is None else f"{tally.cost_usd:.4f}"
    return f"""# {run.suite}: {run.state}

| | |
|---|---|
| run | `{run.run_id}` |
| snapshot | `{run.snapshot_id or "none"}` |
| models | {", ".join(run.models)} |
| samples, items | {run.samples}, {run.items} |
| calls made, from the ledger, failed | {tally.calls_made}, {tally.calls_from_ledger}, {tally.calls_failed} |
| rows landed, already present | {tally.rows_landed}, {tally.rows_already_present} |
| rows in quarantine | {tally.rows_quarantined} |
| cost in USD | {cost} |

{run.message or ""}
"""
