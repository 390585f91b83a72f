"""`evalake forget`: removes a person's or a customer's data from a lake."""

from dataclasses import asdict
from typing import Annotated

import typer

from evalake.cli.options import LAKE, JsonOption, LakeOption


def forget(
    sample: Annotated[str | None, typer.Option(help="The sample with this content hash.", metavar="HASH")] = None,
    session: Annotated[str | None, typer.Option(help="The session with this id.", metavar="ID")] = None,
    dataset: Annotated[str | None, typer.Option(help="All samples of this dataset.", metavar="NAME")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the removals, and change nothing.")] = False,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Remove samples and all data derived from them from the lake, and refuse them in later imports."""
    from evalake.admin.forget import forget as forget_samples
    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    done = forget_samples(Lake(lake), sample=sample, session=session, dataset=dataset, dry_run=dry_run)
    if json:
        show.as_json({"lake": lake, "dry_run": dry_run, **asdict(done), "samples": len(done.samples)})
        return
    would = "would be " if dry_run else ""
    typer.echo(f"{len(done.samples)} samples {would}forgotten; rows {would}removed:")
    for table, rows in done.rows.items():
        typer.echo(f"  {table}: {rows}")
    for file in done.files:
        show.line(f"would be deleted: {file}")
    if done.orphan_calls:
        typer.echo(f"{done.orphan_calls} prompts among them are named by no result, and were found by their text")
    if done.shared_calls:
        typer.echo(f"{done.shared_calls} prompts stay in calls, for samples that are kept have the same")
    typer.echo("Check these places yourself, which may still hold the data:")
    for place in done.look_at:
        show.line(f"  {place}")
    typer.echo("nothing was changed (--dry-run)" if dry_run else "`evalake check` looks at every table")
