"""`evalake rescore`: derives a run's rows and metrics again, without calls."""

from typing import Annotated

import typer

from evalake.cli.options import LAKE, ConfigOption, JsonOption, LakeOption


def rescore(
    run: Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")],
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Derive a run's rows and snapshot again from the ledger, by the present rules."""
    from evalake.cli import output as show
    from evalake.cli.configuration import read
    from evalake.storage.lake import Lake
    from evalake.tasks.rescore import rescore as rescore_run

    done = rescore_run(Lake(lake), run, read(config))
    rows = done.published.counts
    if json:
        show.as_json({"run_id": run, "snapshot_id": done.snapshot_id, "items": done.items, "rows": rows})
        return
    typer.echo(
        f"run {run}: {done.items - done.unanswered} of {done.items} items rescored from the ledger, "
        f"{rows['landed']} rows landed, {rows['already_present']} already present; "
        f"snapshot {done.snapshot_id[:12]}"
    )
