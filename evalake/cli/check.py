"""`evalake check`: every table of a lake against its contract, and every snapshot against its recomputation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.options import LAKE, JsonOption, LakeOption
from evalake.cli.terminal import say_error

if TYPE_CHECKING:
    from evalake.admin.check import CheckedTable
    from evalake.admin.prove import Proof


def check(
    out: Annotated[Path, typer.Option(help="Where the data docs go.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    everything: Annotated[
        bool, typer.Option("--all", help="Prove everything anew, also what an earlier check has proved.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check every table against its contract, its log, its files and its keys, and compute every snapshot again.

    What an earlier check of yours has proved is not proved again where its files are the same, byte for byte.

    What was found is also written as a page, the data docs of the lake's last check.

    Exits with 0 where nothing is wrong, 1 where something is, 3 where nothing is but a snapshot could not be
    recomputed. A rule that only warns is said, and is no failure.
    """
    from evalake.admin.check import check_lake, exit_code
    from evalake.cli import output as show
    from evalake.core.errors import LakeError
    from evalake.storage.lake import Lake

    checked = []
    tell = (lambda _: None) if json else typer.echo
    for table in check_lake(Lake(lake), anew=everything, tell=tell):
        checked.append(table)
        if not json:
            _print_table(table)
    if not checked:  # the name of the lake may be misspelt, and what looked at nothing must not pass
        raise LakeError(f"the lake {lake} has no tables: there is nothing to check")
    proofs = [proof for table in checked for proof in table.proofs]
    docs = _leave_data_docs(lake, checked, out)
    if json:
        show.as_json(_as_object(lake, checked, proofs) | {"data_docs": docs})
    else:
        _print_snapshots(proofs)
        _print_before(checked, proofs)
        if docs:
            typer.echo(f"data docs: {docs}")
    if code := exit_code(checked):
        raise typer.Exit(code)


def _leave_data_docs(lake: str, checked: Sequence["CheckedTable"], out: Path) -> str | None:
    """Write the data docs, and return their path; None where they cannot be written, which says nothing of the lake."""
    from evalake.admin.data_docs import leave_data_docs
    from evalake.core.errors import UsageError
    from evalake.storage.lake import Lake

    try:
        return str(leave_data_docs(Lake(lake), checked, out))
    except UsageError as error:
        say_error(str(error))
        return None


def _print_table(table: "CheckedTable") -> None:
    from evalake.cli import output as show

    found, warned = len(table.findings), len(table.warnings)
    said = [f"{found} found"] * bool(found) + [f"{warned} warning{'' if warned == 1 else 's'}"] * bool(warned)
    show.line(f"{table.contract.table}: {', '.join(said) or 'ok'}")
    for warning in table.warnings:
        show.line(f"  ! {warning}")
    for finding in table.findings:
        show.line(f"  {finding.problem}\n    to mend: {finding.mend}")


def _print_snapshots(proofs: Sequence["Proof"]) -> None:
    from evalake.admin.prove import count_outcomes, reasons
    from evalake.cli import output as show

    if proofs:
        typer.echo(f"\n{count_outcomes(proofs)}")
    for reason, names in reasons(proofs).items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        show.line(f"  not recomputed: {', '.join(names[:3])}{more}: {reason}")


def _print_before(checked: Sequence["CheckedTable"], proofs: Sequence["Proof"]) -> None:
    """Print what was not proved again."""
    files, snapshots = sum(table.files_before for table in checked), sum(proof.before for proof in proofs)
    if files or snapshots:
        typer.echo(
            f"of before: {files} of {sum(table.files for table in checked)} files, "
            f"{snapshots} of {len(proofs)} snapshots (--all proves all anew)"
        )


def _as_object(lake: str, checked: Sequence["CheckedTable"], proofs: Sequence["Proof"]) -> dict[str, Any]:
    tables = [
        {
            "table": table.contract.table,
            "state": table.state,
            "warnings": table.warnings,
            "findings": [{"problem": finding.problem, "mend": finding.mend} for finding in table.findings],
            "files": table.files,
            "files_proved_before": table.files_before,
        }
        for table in checked
    ]
    snapshots = [
        {
            "snapshot_id": proof.snapshot_id,
            "outcome": proof.outcome,
            "reason": proof.reason,
            "proved_before": proof.before,
        }
        for proof in proofs
    ]
    healthy = not any(table.findings for table in checked)
    return {"lake": lake, "healthy": healthy, "tables": tables, "snapshots": snapshots}
