"""The flow check: checks every table of a lake against its contract, log and files, and recomputes every snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from evalake.admin.check import CheckedTable, check_lake
from evalake.admin.data_docs import leave_data_docs
from evalake.admin.prove import reasons
from evalake.contracts.tables import SNAPSHOTS
from evalake.core.errors import EvalakeError, LakeError, UsageError
from evalake.storage.lake import Lake
from evalake.tasks.runtime.artifacts import link_to, reports_folder, writes_reports
from evalake.tasks.runtime.form import LakeUri, open_lake

ARTIFACT = "check"


class CheckError(EvalakeError):
    """The check has findings; the artifact of the flow run lists them, and how to mend each."""


@flow(name="check", persist_result=False)
def check(lake: LakeUri = None) -> State[Any]:
    """Check every table that exists, and create a table of findings, warnings and unproved snapshots.

    With only warnings or snapshots that could not be recomputed, the run completes and gives the reasons. Raises
    CheckError for findings, LakeError for a lake without tables.
    """
    where = open_lake(lake)
    checked = list(check_lake(where))
    if not checked:
        raise LakeError(f"the lake {where.uri} has no tables: there is nothing to check")
    findings = [finding for table in checked for finding in table.findings]
    unproved = reasons([proof for table in checked for proof in table.proofs])
    summary = f"{len(checked)} tables of {where.uri}: {f'{len(findings)} findings' if findings else 'all in order'}"
    warnings = [(table.contract.table, warning) for table in checked for warning in table.warnings]
    rules = "; ".join(f"{table}: {words}" for table, words in warnings)
    if warning := "; ".join([*([f"warning: {rules}"] if rules else []), *_unproved(unproved)]):
        summary = f"{summary}; {warning}"
        get_run_logger().warning(warning)
    rows = [asdict(finding) for finding in findings]
    rows += [
        {"table": table, "problem": f"warning: {words}", "mend": "read the replies of these rows"}
        for table, words in warnings
    ]
    rows += [_row(reason, names) for reason, names in unproved.items()]
    create_table_artifact(rows, key=ARTIFACT, description=summary + _data_docs(where, checked))
    if findings:
        raise CheckError(
            f"{summary}; the first: {findings[0].table} {findings[0].problem}; to mend: {findings[0].mend}"
        )
    return Completed(message=summary)


def _data_docs(lake: Lake, checked: Sequence[CheckedTable]) -> str:
    """Write the data docs to the folder of reports, if there is one; returns their place for the summary."""
    if not writes_reports():
        return ""
    try:
        return f"; data docs: {link_to(leave_data_docs(lake, checked, reports_folder()))}"
    except UsageError as error:
        get_run_logger().warning(str(error))
        return ""


def _unproved(unproved: Mapping[str, Sequence[str]]) -> list[str]:
    """Describe the snapshots that could not be recomputed, as no or one warning."""
    count = sum(map(len, unproved.values()))
    words = "; ".join(f"{len(names)}: {reason}" for reason, names in unproved.items())
    return [f"warning: {count} snapshots could not be recomputed ({words})"] if count else []


def _row(reason: str, names: Sequence[str]) -> dict[str, str]:
    problem = f"warning: {len(names)} snapshots could not be recomputed: {reason}"
    return {"table": SNAPSHOTS.table, "problem": problem, "mend": f"verify them with that evalake: {', '.join(names)}"}
