"""The flow backup: copies the lake to another place, and checks the copy."""

import os
from dataclasses import asdict
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from evalake.admin.check import check_lake
from evalake.admin.prove import count_outcomes
from evalake.core.errors import EvalakeError
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.suites.registry import all_contracts
from evalake.tasks.runtime.form import LakeUri, open_lake

ARTIFACT = "backup"
VARIABLE = "EVALAKE_BACKUP"


class BackupError(EvalakeError):
    """The check of a lake's copy has findings, so it is not a backup."""


@flow(name="backup", persist_result=False)
def backup(to: LakeUri = None, lake: LakeUri = None) -> State[Any]:
    """Copy the files that the backup lacks, check the whole copy, and create a table of both.

    Raises LakeError where the lake cannot be copied, BackupError where the check of the copy has findings. Without a
    place, nothing is copied, and the run completes as NotConfigured.

    Args:
        to: The folder or URI of the copy; default: EVALAKE_BACKUP of the worker.
    """
    where = open_lake(lake)
    target = to or os.environ.get(VARIABLE)
    if not target:
        return Completed(
            name="NotConfigured", message=f"no backup was made: set {VARIABLE} of the worker to a folder or URI"
        )
    copy = Lake(target)
    done = back_up(where, copy, all_contracts(where))
    described = f"Backup of {where.uri} in {copy.uri}"
    create_table_artifact([asdict(table) for table in done], key=ARTIFACT, description=described)
    checked = list(check_lake(copy))
    if findings := [finding for table in checked for finding in table.findings]:
        first = findings[0]
        raise BackupError(f"{described} has {len(findings)} findings; the first: {first.table} {first.problem}")
    copied = sum(table.bytes_copied for table in done) / 1e6
    outcomes = count_outcomes([proof for table in checked for proof in table.proofs])
    return Completed(message=f"{described}: {len(done)} tables, {copied:.1f} MB new, all in order; {outcomes}")
