"""The flow rescore: derives a run's rows and snapshot again from the ledger, with a table in the UI."""

from prefect import flow
from prefect.artifacts import create_table_artifact

from evalake.tasks.rescore import rescore as rescore_run
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, flow_inputs


@flow(name="rescore", flow_run_name="rescore-{run_id}", persist_result=False)
def rescore(
    run_id: str,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> str:
    """Derive the rows and the snapshot of a run again by the present rules; returns the snapshot's id.

    Calls no model. Raises UsageError for an unknown run, LakeError where the ledger has none of its replies,
    RescoreError where rows could not be scored.

    Args:
        run_id: The run, as `evalake runs` lists it.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    done = rescore_run(where, run_id, configuration)
    counts = {"items": done.items, "unanswered": done.unanswered, **done.published.counts}
    create_table_artifact([counts], key=f"rescore-{run_id.lower()}", description=f"Snapshot {done.snapshot_id}")
    done.require_whole(run_id)
    return done.snapshot_id
