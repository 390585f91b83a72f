"""`evalake tables`, `check`, `maintain` and `forget`: look at a lake, prove it, and keep it in order."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.configuration import read
from evalake.cli.help import App
from evalake.cli.terminal import say, say_error
from evalake.core.errors import LakeError, UsageError

if TYPE_CHECKING:
    from evalake.admin.check import CheckedTable
    from evalake.admin.prove import Proof
    from evalake.storage.lake import Lake

app = App()
COLUMNS = ("table", "rows", "changed_at", "version", "files", "bytes", "description")


@app.command("tables")
def tables(
    table: Annotated[str | None, typer.Argument(help="Describe only this table or view.", metavar="TABLE")] = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="List columns, types, keys and rules, with views.")
    ] = False,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """List the tables, most recently changed first; or describe their columns."""
    from evalake.storage.cached_table import inventory
    from evalake.suites.registry import all_contracts, because_undeclared, undeclared_tables

    style, where = options.style_of(style, as_json=json), options.open_lake(lake)
    if describe or table is not None:
        _describe(where, table, style)
    else:
        show.listing("tables", inventory(where, all_contracts(where)), lake, style, COLUMNS)
        if undeclared := undeclared_tables(where):
            say(f"not listed: {because_undeclared(undeclared)}")


def _describe(lake: "Lake", table: str | None, style: options.Format) -> None:
    from evalake.storage.sql.catalogue import COLUMN_FIELDS, catalogue, column_frame
    from evalake.suites.registry import all_contracts

    entries = catalogue(all_contracts(lake), table)
    if style is options.Format.json:
        show.as_json(list(map(asdict, entries)))
    elif style is options.Format.csv:
        show.rows(column_frame(entries), style)
    else:
        for entry in entries:
            show.line("")
            for text in (f"{entry.kind} {entry.name}: {entry.description}", *(f"  {rule}" for rule in entry.rules)):
                for part in wrap(text, show.width(), subsequent_indent="    ", break_on_hyphens=False):
                    show.line(part)
            show.rows(column_frame([entry]), style, list(COLUMN_FIELDS))


@app.command("check")
def check(
    out: Annotated[Path, typer.Option(help="The folder of the data docs.", metavar="DIR")] = Path("evalake-reports"),
    lake: options.Lake = options.LAKE,
    everything: Annotated[bool, typer.Option("--all", help="Prove everything again, ignoring earlier checks.")] = False,
    json: options.Json = False,
) -> None:
    """Check every table against its contract, log, files and keys, and recompute every snapshot.

    Proofs of your earlier checks count while the files have the same bytes.

    The result is also a page, the data docs.

    Exits with 0 without findings, 1 with findings (JSON says `healthy` false), 3 where only
    snapshots could not be recomputed, or a table not checked, since no suite here declares it.
    A rule that only warns, like the one about unreadable replies, is printed and changes no exit
    status: the run or import of them ended with 1.
    """
    from evalake.admin.check import check_lake, exit_code
    from evalake.suites.registry import because_undeclared, undeclared_tables

    checked, where = [], options.open_lake(lake)
    undeclared = undeclared_tables(where)
    tell = (lambda _: None) if json else typer.echo
    for table in check_lake(where, again=everything, tell=tell):
        checked.append(table)
        if not json:
            _print_table(table)
    if not checked and undeclared:
        raise LakeError(f"nothing of the lake {lake} can be checked: it has {because_undeclared(undeclared)}")
    if not checked:  # the lake's name may be misspelt
        raise LakeError(f"the lake {lake} has no tables: there is nothing to check")
    proofs = [proof for table in checked for proof in table.proofs]
    docs = _leave_data_docs(where, checked, undeclared, out)
    if json:
        show.as_json(_as_object(lake, checked, undeclared, proofs) | {"data_docs": docs})
    else:
        _print_undeclared("not checked", undeclared)
        _print_snapshots(proofs)
        _print_before(checked, proofs)
        if docs:
            typer.echo(f"data docs: {docs}")
    if code := exit_code(checked, undeclared):
        raise typer.Exit(code)


def _print_undeclared(not_done: str, tables: Sequence[str]) -> None:
    """Print the tables that are left alone, because no suite here declares them."""
    from evalake.suites.registry import because_undeclared

    if tables:
        show.line(f"{not_done}: {because_undeclared(tables)}")


def _leave_data_docs(
    lake: "Lake", checked: "Sequence[CheckedTable]", undeclared: Sequence[str], out: Path
) -> str | None:
    """Write the data docs and return their path; None where they cannot be written."""
    from evalake.admin.check import leave_data_docs

    try:
        return str(leave_data_docs(lake, checked, out, undeclared))
    except UsageError as error:
        say_error(str(error))
        return None


def _print_table(table: "CheckedTable") -> None:

    found, warned = len(table.findings), len(table.warnings)
    said = [f"{found} found"] * bool(found) + [f"{warned} warning{'' if warned == 1 else 's'}"] * bool(warned)
    show.line(f"{table.contract.table}: {', '.join(said) or 'ok'}")
    for warning in table.warnings:
        show.line(f"  ! {warning}")
    for finding in table.findings:
        show.line(f"  {finding.problem}\n    to mend: {finding.mend}")


def _print_snapshots(proofs: "Sequence[Proof]") -> None:
    from evalake.admin.prove import count_outcomes, reasons

    if proofs:
        typer.echo(f"\n{count_outcomes(proofs)}")
    for reason, names in reasons(proofs).items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        show.line(f"  not recomputed: {', '.join(names[:3])}{more}: {reason}")


def _print_before(checked: "Sequence[CheckedTable]", proofs: "Sequence[Proof]") -> None:
    """Print the number of earlier proofs in use."""
    files, snapshots = sum(table.files_before for table in checked), sum(proof.before for proof in proofs)
    if files or snapshots:
        typer.echo(
            f"proved before: {files} of {sum(table.files for table in checked)} files, "
            f"{snapshots} of {len(proofs)} snapshots (--all proves all again)"
        )


def _as_object(
    lake: str, checked: "Sequence[CheckedTable]", undeclared: Sequence[str], proofs: "Sequence[Proof]"
) -> dict[str, Any]:
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
    states = [*(table.state for table in checked), *(["warning"] if undeclared else [])]
    state = next((each for each in ("broken", "warning") if each in states), "ok")
    shown = {"tables": tables, "undeclared": undeclared, "snapshots": snapshots}
    return {"lake": lake, "healthy": state != "broken", "state": state, **shown}


@app.command("maintain")
def maintain(
    dry_run: options.DryRun = False,
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Migrate a lake of an older evalake to this one's schema, and do nothing else."),
    ] = False,
    suspicious: Annotated[
        bool, typer.Option("--suspicious", help="List replies that look like failures, by run, and do nothing else.")
    ] = False,
    again: Annotated[
        str | None,
        typer.Option(
            "--ask-again", help="Withdraw the suspicious replies of a kind: the next run asks again.", metavar="KIND"
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(help="With --ask-again: only replies of this run.", metavar="ID")] = None,
    model: Annotated[
        str | None, typer.Option(help="With --ask-again: only replies of this model.", metavar="MODEL")
    ] = None,
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Compact small files, write checkpoints, remove unneeded and expired files; or migrate a lake."""
    from evalake.admin.maintain import maintain as maintain_lake

    if migrate:
        _migrate(lake, dry_run, as_json=json)
        return
    if again is None and (run or model):
        raise UsageError(
            "--run and --model choose what --ask-again withdraws: give it a kind, as --suspicious lists them"
        )
    if suspicious or again is not None:
        _suspicious(lake, again, run, model, dry_run=dry_run, as_json=json)
        return
    done = maintain_lake(options.open_lake(lake), read(config).retention, dry_run)
    if json:
        tables = [{**asdict(table), "files_removed": table.files_removed} for table in done.tables]
        show.as_json({"dry_run": dry_run, **asdict(done), "tables": tables})
        return
    if done.tables:
        rows = [{**asdict(table), "removed": table.files_removed} for table in done.tables]
        show.table(pl.DataFrame(rows).rename({"removed": "files_removed"}))
        for table in done.tables if dry_run else ():
            for file in table.removed:
                show.line(f"would be deleted: {table.table}/{file}")
    elif not done.undeclared:
        typer.echo(f"the lake {lake} has no tables")
    _print_undeclared("not maintained", done.undeclared)
    for kind in done.expired:
        removed = f"{kind.removed} {kind.kept} of more than {kind.older_than_days} days"
        typer.echo(f"{removed} {'would be ' if dry_run else ''}removed: {kind.where}")
        for file in kind.files if dry_run else ():
            show.line(f"would be deleted: {file}")


def _suspicious(
    lake: str, kind: str | None, run: str | None, model: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """List the suspicious replies of a lake, or withdraw one kind of them."""
    from evalake.admin.maintain import ask_again, suspicious

    where = options.open_lake(lake)
    found = suspicious(where) if kind is None else ask_again(where, kind, run, model, dry_run=dry_run)
    replies = int(found["replies"].sum())
    if as_json:
        about = {} if kind is None else {"withdrawn": 0 if dry_run else replies, "dry_run": dry_run}
        show.as_json({**about, "suspicious": found.to_dicts()})
        return
    if found.height:
        show.table(found)
    if kind is None:
        again = "`evalake maintain --ask-again KIND` withdraws those of a kind"
        typer.echo(f"{replies} replies look like failures; {again}" if replies else "no reply looks like a failure")
    elif dry_run:
        typer.echo(f"{replies} replies would be withdrawn")
    else:
        typer.echo(f"{replies} replies are withdrawn: the same `evalake run` asks for them again")


def _migrate(lake: str, dry_run: bool, *, as_json: bool) -> None:
    from evalake.admin.maintain import migrate
    from evalake.suites.registry import undeclared_tables

    where = options.open_lake(lake)
    done, undeclared = migrate(where, dry_run), undeclared_tables(where)
    if as_json:
        migrated = [asdict(each) for each in done]
        show.as_json({"dry_run": dry_run, "migrated": migrated, "undeclared": undeclared})
        return
    _print_undeclared("not migrated", undeclared)
    if not done:
        typer.echo(f"the lake {lake} is of this evalake's schema already")
        return
    rows = [
        {"table": each.table, "schema": f"{each.from_version} to {each.to_version}", "changes": "; ".join(each.changes)}
        for each in done
    ]
    show.table(pl.DataFrame(rows))
    typer.echo("nothing was changed (--dry-run)" if dry_run else "migrated; `evalake check` looks at every table")


@app.command("forget")
def forget(
    sample: Annotated[str | None, typer.Option(help="The sample with this content hash.", metavar="HASH")] = None,
    session: Annotated[str | None, typer.Option(help="The session with this id.", metavar="ID")] = None,
    dataset: Annotated[str | None, typer.Option(help="All samples of this dataset.", metavar="NAME")] = None,
    dry_run: options.DryRun = False,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Remove samples and all data derived from them from the lake, and refuse them in later imports."""
    from evalake.admin.forget import forget as forget_samples
    from evalake.reports.wording import count_of

    done = forget_samples(options.open_lake(lake), sample=sample, session=session, dataset=dataset, dry_run=dry_run)
    if json:
        show.as_json({"lake": lake, "dry_run": dry_run, **asdict(done), "samples": len(done.samples)})
        return
    would = "would be " if dry_run else ""
    typer.echo(f"{count_of(len(done.samples), 'sample')} {would}forgotten; rows {would}removed:")
    for table, rows in done.rows.items():
        typer.echo(f"  {table}: {rows}")
    for file in done.files:
        show.line(f"would be deleted: {file}")
    if done.orphan_calls:
        typer.echo(f"{count_of(done.orphan_calls, 'prompt')} found by text, because no result names them")
    if done.shared_calls:
        typer.echo(f"{count_of(done.shared_calls, 'prompt')} kept in calls, because kept samples share them")
    typer.echo("These places may still hold the data; check them yourself:")
    for place in done.look_at:
        show.line(f"  {place}")
    typer.echo("nothing was changed (--dry-run)" if dry_run else "`evalake check` looks at every table")
