"""`evalake import`: take recorded results into the lake."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


def import_(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines, one recorded result a line.", metavar="FILE…")],
    suite: Annotated[str, typer.Option(help="The suite the results belong to.")],
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Import recorded results: scored, audited and measured like a run, without any call."""
    from cli.results import find_run, finish_import
    from storage.lake import Lake
    from suites.registry import suite as find_suite
    from tasks.recorded import import_recorded

    where = Lake(lake)
    run_id = import_recorded(where, find_suite(suite), files)
    run = find_run(where, run_id)
    assert run is not None
    finish_import(run, lake, out, as_json=json)
