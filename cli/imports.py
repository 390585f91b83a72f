"""`evalake import`: take recorded results into the lake."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


def import_(
    files: Annotated[
        list[str],
        typer.Argument(help="Recorded results, one JSON object a line; for session_review, sessions.", metavar="FILE"),
    ],
    suite: Annotated[str, typer.Option(help="The suite the results belong to.")],
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Import recorded results: scored, audited and measured like a run, without any call."""
    from cli.results import find_run, finish_import
    from contracts.configuration import read_configuration
    from storage.lake import Lake
    from suites.registry import suite as find_suite
    from tasks.import_samples import import_samples
    from tasks.recorded import import_recorded

    where = Lake(lake)
    found = find_suite(suite)
    if found.read_recorded is None:
        run_id = import_samples(where, found, files)
    else:
        run_id = import_recorded(where, found, [Path(file) for file in files], read_configuration())
    run = find_run(where, run_id)
    assert run is not None
    finish_import(run, lake, out, as_json=json)
