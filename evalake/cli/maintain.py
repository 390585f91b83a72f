"""`evalake maintain`: maintains a lake, or migrates an older one."""

from dataclasses import asdict
from typing import Annotated

import typer

from evalake.cli.options import LAKE, ConfigOption, JsonOption, LakeOption
from evalake.core.errors import UsageError


def maintain(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the changes, and make none.")] = False,
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
    run: Annotated[
        str | None, typer.Option("--run", help="With --ask-again: only replies of this run.", metavar="ID")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="With --ask-again: only replies of this model.", metavar="MODEL")
    ] = None,
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Compact small files, write checkpoints, remove unneeded and expired files; or migrate a lake."""
    import polars as pl

    from evalake.admin.maintain import maintain as maintain_lake
    from evalake.cli import output as show
    from evalake.cli.configuration import read
    from evalake.storage.lake import Lake

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
    done = maintain_lake(Lake(lake), read(config).retention, dry_run)
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
    else:
        typer.echo(f"the lake {lake} has no tables")
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
    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    found = suspicious(Lake(lake)) if kind is None else ask_again(Lake(lake), kind, run, model, dry_run=dry_run)
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
    import polars as pl

    from evalake.admin.maintain import migrate
    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    done = migrate(Lake(lake), dry_run)
    if as_json:
        show.as_json({"dry_run": dry_run, "migrated": [asdict(each) for each in done]})
        return
    if not done:
        typer.echo(f"the lake {lake} is of this evalake's schema already")
        return
    rows = [
        {"table": each.table, "schema": f"{each.from_version} to {each.to_version}", "changes": "; ".join(each.changes)}
        for each in done
    ]
    show.table(pl.DataFrame(rows))
    typer.echo("nothing was changed (--dry-run)" if dry_run else "migrated; `evalake check` looks at every table")
