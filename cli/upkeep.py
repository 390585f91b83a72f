"""`evalake maintain` and `evalake check`: look after a lake."""

from typing import Annotated

import typer

from cli.options import LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("maintain")(maintain)
    app.command("check")(check)


def maintain(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    lake: LakeOption = LAKE,
) -> None:
    """Compact small files, write checkpoints, remove files that no snapshot needs."""
    import polars as pl

    from cli import show
    from storage.lake import Lake
    from tasks.upkeep import maintain as maintain_lake

    done = maintain_lake(Lake(lake), dry_run)
    if not done:
        typer.echo(f"the lake {lake} has no tables")
        return
    show.table(pl.DataFrame(done))


def check(lake: LakeOption = LAKE, json: JsonOption = False) -> None:
    """Check every table against its contract, its log, its files and its keys, and compute every snapshot again."""
    from cli import show
    from contracts.errors import LakeError
    from storage.lake import Lake
    from tasks.check import check_lake

    tables = []
    for contract, findings in check_lake(Lake(lake)):
        tables.append({"table": contract.table, "findings": [{"problem": f.problem, "mend": f.mend} for f in findings]})
        if not json:
            typer.echo(f"{contract.table}: {'ok' if not findings else f'{len(findings)} found'}")
            for finding in findings:
                typer.echo(f"  {finding.problem}\n    to mend: {finding.mend}")
    if not tables:  # the name of the lake may be misspelt, and what looked at nothing must not pass
        raise LakeError(f"the lake {lake} has no tables: there is nothing to check")
    healthy = not any(table["findings"] for table in tables)
    if json:
        show.as_json({"lake": lake, "healthy": healthy, "tables": tables})
    if not healthy:
        raise typer.Exit(1)
