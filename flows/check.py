"""Check: every table of a lake against its contract, its log and its files, and every snapshot computed again."""

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
from evalake.tasks.runtime.artifacts import leaves_reports, link_to, reports_folder
from evalake.tasks.runtime.form import LakeUri, open_lake

ARTIFACT = "check"


class CheckError(EvalakeError):
    """Something is wrong with the lake; the artifact of the flow run says what, and how to mend it."""


@flow(name="check", persist_result=False)
def check(lake: LakeUri = None) -> State[Any]:
    """Check every table that exists, and leave a table of what is wrong and of snapshots that were not recomputed.

    Where nothing is wrong but a rule warns, or a snapshot could not be recomputed, the run completes and warns, with
    the reason. Raises CheckError where something is wrong, and LakeError where there is no table at all.
    """
    where = open_lake(lake)
    checked = list(check_lake(where))
    if not checked:
        raise LakeError(f"the lake {where.uri} has no tables: there is nothing to check")
    findings = [finding for table in checked for finding in table.findings]
    unproved = reasons([proof for table in checked for proof in table.proofs])
    summary = f"{len(checked)} tables of {where.uri}: {f'{len(findings)} findings' if findings else 'all in order'}"
    warnings = [(table.contract.table, warning) for table in checked for warning in table.warnings]
    if warning := "; ".join(filter(None, (_rules(warnings), _warning(unproved)))):
        summary = f"{summary}; {warning}"
        get_run_logger().warning(warning)
    rows = [asdict(finding) for finding in findings] + [_warned(*each) for each in warnings]
    rows += [_row(reason, names) for reason, names in unproved.items()]
    create_table_artifact(rows, key=ARTIFACT, description=summary + _data_docs(where, checked))
    if findings:
        raise CheckError(
            f"{summary}; the first: {findings[0].table} {findings[0].problem}; to mend: {findings[0].mend}"
        )
    return Completed(message=summary)


def _data_docs(lake: Lake, checked: Sequence[CheckedTable]) -> str:
    """Write the data docs where flow runs leave reports; returns words that say where, to end the summary."""
    if not leaves_reports():
        return ""
    try:
        return f"; data docs: {link_to(leave_data_docs(lake, checked, reports_folder()))}"
    except UsageError as error:
        get_run_logger().warning(str(error))
        return ""


def _rules(warnings: Sequence[tuple[str, str]]) -> str:
    """Say which rules warn; nothing where none does."""
    said = "; ".join(f"{table}: {warning}" for table, warning in warnings)
    return f"warning: {said}" if said else ""


def _warned(table: str, warning: str) -> dict[str, str]:
    return {"table": table, "problem": f"warning: {warning}", "mend": "read the replies of these rows"}


def _warning(unproved: Mapping[str, Sequence[str]]) -> str:
    """Say how many snapshots could not be recomputed, and why; nothing where there is none."""
    count = sum(map(len, unproved.values()))
    whys = "; ".join(f"{len(names)}: {reason}" for reason, names in unproved.items())
    return f"warning: {count} snapshots could not be recomputed ({whys})" if count else ""


def _row(reason: str, names: Sequence[str]) -> dict[str, str]:
    problem = f"warning: {len(names)} snapshots could not be recomputed: {reason}"
    return {"table": SNAPSHOTS.table, "problem": problem, "mend": f"verify them with that evalake: {', '.join(names)}"}
