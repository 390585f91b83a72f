"""`evalake import`: take recorded results into the lake."""

from collections.abc import Mapping
from json import loads as decode
from pathlib import Path
from typing import Annotated, Any

import typer

from evalake.cli.options import JsonOption, takes
from evalake.core.redaction import visible
from evalake.request import RunRequest

MOST_PLACES = 20


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


@takes("max_missing", "accept_unreadable", "tags", "note", "lake")
def import_(
    asked: Mapping[str, Any],
    files: Annotated[
        list[str],
        typer.Argument(
            help="Recorded results (JSON Lines, or a folder of a round), or sources of samples.",
            metavar="FILE",
        ),
    ],
    suite: Annotated[str, typer.Option(help="The suite the results belong to.", metavar="SUITE")],
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    json: JsonOption = False,
) -> None:
    """Import recorded results: scored, audited and measured like a run, without any call."""
    from evalake.admin.import_results import import_recorded, import_samples
    from evalake.cli.configuration import read
    from evalake.cli.outcome import find_run, finish_import
    from evalake.storage.lake import Lake
    from evalake.suites.registry import suite as find_suite
    from evalake.tasks.coverage import tolerance_of_request
    from evalake.tasks.runtime.runs import labels_of

    request = RunRequest(suite, **asked)
    where = Lake(request.lake)
    chosen = find_suite(suite)
    labels = labels_of(request.tags, request.note)
    if chosen.data.imports == "samples":
        run_id = import_samples(where, chosen, files, labels)
    else:
        configuration = read(None)
        tolerance = tolerance_of_request(configuration, request)
        run_id = import_recorded(where, chosen, [Path(file) for file in files], configuration, labels, tolerance)
    run = find_run(where, run_id)
    assert run is not None
    if not json:
        _print_folders(run)
    finish_import(run, request.lake, out, as_json=json)


def _print_folders(run: dict[str, Any]) -> None:
    """Print what was read of folders, and file by file what was left out, where there were any."""
    import polars as pl

    from evalake.cli import output as show

    parameters = decode(run["parameters"] or "{}")
    read: dict[str, int] = parameters.get("folders", {})
    if not read:
        return
    show.table(pl.DataFrame({"folder": list(read), "files read": list(read.values())}))
    for reason, places in parameters["left_out"].items():
        typer.echo(f"\nleft out, {reason}: {len(places)}")
        for place in places[:MOST_PLACES]:
            typer.echo(f"  {visible(place)}")
        if len(places) > MOST_PLACES:
            typer.echo(f"  … and {len(places) - MOST_PLACES} more")
    for remark in parameters.get("remarks", ()):
        typer.echo(f"\n{visible(remark)}")
    typer.echo("")
