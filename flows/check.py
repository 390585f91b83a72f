"""The flow check: checks every table of a lake against its contract, log and files, and recomputes every snapshot."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from evalake.admin.check import CheckedTable, check_lake, leave_data_docs
from evalake.admin.prove import reasons
from evalake.contracts.tables import SNAPSHOTS
from evalake.core.errors import EvalakeError, LakeError, UsageError
from evalake.storage.lake import Lake
from evalake.suites.registry import undeclared_tables
from evalake.tasks.runtime.artifacts import link_to, reports_folder, writes_reports
from evalake.tasks.runtime.form import LakeUri, open_lake

ARTIFACT = "check"
LOOK_WHERE_WRITABLE = "check it where it can be written"
LOOK_AT_REPLIES = "read the replies of these rows"


class CheckError(EvalakeError):
    """The check has findings; the artifact of the flow run lists them, and how to mend each."""


@flow(name="check", persist_result=False)
def check(lake: LakeUri = None) -> State[Any]:
    """Check every table that exists, and create a table of findings, warnings and unproved snapshots.

    With only warnings, snapshots that could not be recomputed or tables that no suite here declares, the run completes
    and gives the reasons. Raises CheckError for findings, LakeError for a lake without tables.
    """
    where = open_lake(lake)
    checked = list(check_lake(where))
    undeclared = undeclared_tables(where)
    if not checked and not undeclared:
        raise LakeError(f"the lake {where.uri} has no tables: there is nothing to check")
    findings = [finding for table in checked for finding in table.findings]
    unproved = reasons([proof for table in checked for proof in table.proofs])
    warned = [
        _warning(table.contract.table, words, LOOK_WHERE_WRITABLE if words in table.unkept else LOOK_AT_REPLIES)
        for table in checked
        for words in table.warnings
    ]
    not_checked = "no suite here declares it, so that it is not checked"
    warned += [_warning(table, not_checked, "check it where its suite is installed") for table in undeclared]
    warned += [
        _warning(
            SNAPSHOTS.table,
            f"{len(names)} snapshots could not be recomputed: {reason}",
            f"verify them with that evalake: {', '.join(names)}",
        )
        for reason, names in unproved.items()
    ]
    summary = f"{len(checked)} tables of {where.uri}: {f'{len(findings)} findings' if findings else 'all in order'}"
    for row in warned:
        words = f"{row['table']}: {row['problem']}"
        summary += f"; {words}"
        get_run_logger().warning(words)
    rows = [*map(asdict, findings), *warned]
    create_table_artifact(rows, key=ARTIFACT, description=summary + _data_docs(where, checked, undeclared))
    if findings:
        raise CheckError(
            f"{summary}; the first: {findings[0].table} {findings[0].problem}; to mend: {findings[0].mend}"
        )
    return Completed(message=summary)


def _warning(table: str, words: str, mend: str) -> dict[str, str]:
    return {"table": table, "problem": f"warning: {words}", "mend": mend}


def _data_docs(lake: Lake, checked: Sequence[CheckedTable], undeclared: Sequence[str]) -> str:
    """Write the data docs to the folder of reports, if there is one; returns their place for the summary."""
    if not writes_reports():
        return ""
    try:
        return f"; data docs: {link_to(leave_data_docs(lake, checked, reports_folder(), undeclared))}"
    except UsageError as error:
        get_run_logger().warning(str(error))
        return ""
