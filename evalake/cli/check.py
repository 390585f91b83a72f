"""`evalake check`: checks every table against its contract, and every snapshot against its recomputation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.options import LAKE, JsonOption, LakeOption
from evalake.cli.terminal import say_error
from evalake.core.errors import LakeError, UsageError

if TYPE_CHECKING:
    from evalake.admin.check import CheckedTable
    from evalake.admin.prove import Proof


def check(
    out: Annotated[Path, typer.Option(help="The folder of the data docs.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    everything: Annotated[bool, typer.Option("--all", help="Prove everything again, ignoring earlier checks.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every table against its contract, log, files and keys, and recompute every snapshot.

    Proofs of your earlier checks count while the files have the same bytes.

    The result is also a page, the data docs.

    Exits with 0 without findings, 1 with findings (JSON says `healthy` false), 3 where only
    snapshots could not be recomputed. A rule that only warns, like the one about unreadable
    replies, is printed and changes no exit status: the run or import of them ended with 1.
    """
    from evalake.admin.check import check_lake, exit_code
    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    checked = []
    tell = (lambda _: None) if json else typer.echo
    for table in check_lake(Lake(lake), again=everything, tell=tell):
        checked.append(table)
        if not json:
            _print_table(table)
    if not checked:  # the lake's name may be misspelt
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
    """Write the data docs and return their path; None where they cannot be written."""
    from evalake.admin.check import leave_data_docs
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
    """Print the number of earlier proofs in use."""
    files, snapshots = sum(table.files_before for table in checked), sum(proof.before for proof in proofs)
    if files or snapshots:
        typer.echo(
            f"proved before: {files} of {sum(table.files for table in checked)} files, "
            f"{snapshots} of {len(proofs)} snapshots (--all proves all again)"
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
    states = [table.state for table in checked]
    state = next((each for each in ("broken", "warning") if each in states), "ok")
    return {"lake": lake, "healthy": state != "broken", "state": state, "tables": tables, "snapshots": snapshots}
